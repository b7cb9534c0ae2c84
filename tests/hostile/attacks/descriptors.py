# SPDX-License-Identifier: Apache-2.0
"""descriptors.py SOCKET: sends messages with very many descriptors over new connections again and
again until its input ends."""

import os
import socket
import sys
import threading

MOST = 250
CONNECTIONS = 300
descriptors = [os.memfd_create("many")] * MOST


def send() -> None:
    kept: list[socket.socket] = []
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        kept.append(connection)
        try:
            connection.connect(sys.argv[1])
            for _ in range(20):
                socket.send_fds(connection, [b"\1"], descriptors)
        except OSError:
            """The queue is full, or too many descriptors are on their way."""
        if len(kept) > CONNECTIONS:
            kept.pop(0).close()


threading.Thread(target=send, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
