# SPDX-License-Identifier: Apache-2.0
"""Runs tare-map in a guest while connections are made there, and prints what it found as JSON.

Its words are the path of tare-map and methods, each of which gets a run of its own.
"""

import contextlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from typing import Any

COUNT, SIZE = 20, 1_000


def exchange(listener: socket.socket) -> None:
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with client, server:
        client.sendall(b"x" * SIZE)
        server.recv(SIZE, socket.MSG_WAITALL)
        server.sendall(b"y")
        client.recv(1)


def trace(command: list[str]) -> dict[str, Any]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    # It is older than the tracer.
    old = socket.create_connection(("127.0.0.1", port))
    accepted, _ = listener.accept()
    tracer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr
    messages = []
    for line in tracer.stderr:
        messages.append(line)
        if "tracing until Ctrl-C" in line:
            break
    for _ in range(COUNT):
        exchange(listener)
    listener.close()
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    old.sendall(b"z" * SIZE)
    accepted.recv(SIZE, socket.MSG_WAITALL)
    tracer.send_signal(signal.SIGINT)
    out, err = tracer.communicate()
    found = json.loads(out) if out else {"edges": []}
    edges = [edge for edge in found.pop("edges") if edge["port"] == port]
    return found | {"own": edges, "pid": os.getpid(), "messages": "".join(messages) + err}


if __name__ == "__main__":
    program, *methods = sys.argv[1:]
    runs = {method: trace([program, "--json", "--method", method]) for method in methods}
    print(json.dumps({"kernel": platform.release(), "runs": runs}))
