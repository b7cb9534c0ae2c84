# SPDX-License-Identifier: Apache-2.0
"""Listening sockets that a program has inherited or received: their connections are linked."""

import pytest
from tests.link import linked
from tests.link.programs import PYTHON

BEGIN = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
"""
TALKS = """
def answers(listener):
    far, _ = listener.accept()
    while request := far.recv(100):
        far.sendall(request)
def asks(port):
    with socket.create_connection(("127.0.0.1", port)) as near:
        for _ in range(100):
            near.sendall(b"request")
            assert near.recv(100) == b"request"
"""
WAYS = {
    "fork": """
if os.fork() == 0:
    answers(listener)
    os._exit(0)
port = listener.getsockname()[1]
listener.close()
asks(port)
assert os.wait()[1] == 0
""",
    "exec": f"""
listener.set_inheritable(True)
port, number = listener.getsockname()[1], listener.fileno()
if os.fork() == 0:
    words = "import socket" + {TALKS!r} + f"answers(socket.socket(fileno={{number}}))"
    os.execv(sys.executable, [sys.executable, "-c", words])
listener.close()
asks(port)
assert os.wait()[1] == 0
""",
    "SCM_RIGHTS": """
one, other = socket.socketpair()
if os.fork() == 0:
    listener.close()
    _, (number,), _, _ = socket.recv_fds(one, 1, 1)
    answers(socket.socket(fileno=number))
    os._exit(0)
port = listener.getsockname()[1]
socket.send_fds(other, [b"l"], [listener.fileno()])
listener.close()
asks(port)
assert os.wait()[1] == 0
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_connections_of_a_listener_are_linked_that_another_program_opened(way: str) -> None:
    run = linked.run(PYTHON, "-c", BEGIN + TALKS + WAYS[way])
    assert (run.code, run.errors) == (0, "")
    assert run.counts["reset"] == 0
    linked.assert_carried(run.counts, 2)
