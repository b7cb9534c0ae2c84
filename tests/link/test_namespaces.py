# SPDX-License-Identifier: Apache-2.0
"""Programs in different PID and mount namespaces, as in two containers of a pod."""

import json
import subprocess

import pytest
from tests.link.linked import LINK, assert_carried
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS

PYTHON = "/usr/bin/python3"
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc"]
SERVER = """
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
far, _ = listener.accept()
assert os.getpid() < 10
while request := far.recv(100):
    far.sendall(request)
    if request == b"last":
        # The client has not read it yet.
        os.kill(os.getpid(), 9)
"""
CLIENT = """
import socket, sys
near = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(50):
    near.sendall(b"request")
    assert near.recv(100) == b"request"
near.sendall(b"last")
assert near.recv(100) == b"last"
try:
    print(len(near.recv(100)))
except ConnectionResetError:
    print(0)
"""


def test_programs_in_two_pid_namespaces_are_linked() -> None:
    if not may_make_namespaces():
        pytest.skip("namespaces cannot be made here")
    server = subprocess.Popen(
        [*CONTAINER, LINK, "--eager", "--json", "--", PYTHON, "-c", SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        command = [LINK, "--eager", "--json", "--", PYTHON, "-c", CLIENT, port]
        client = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=SECONDS
        )
        _, errors = server.communicate(timeout=SECONDS)
    finally:
        server.kill()
    assert client.stdout == "0\n"
    for text in (errors, client.stderr):
        counts = json.loads(text.splitlines()[-1])
        assert_carried(counts, 1)
