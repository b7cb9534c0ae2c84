# SPDX-License-Identifier: Apache-2.0
"""Servers that are not linked: short connections to them do not wait for a link again and again."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.link import linked
from tests.waiting import SECONDS

SERVE = """
import socket, sys
port, answer = int(sys.argv[1]), sys.argv[2].encode()
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    while connection.recv(1):
        connection.sendall(answer)
    connection.close()
"""
EXCHANGE = """
import socket, sys, time
def exchange(times):
    '''What the server answers, whether its end is waited for, and whether there is a link.'''
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        for _ in range(times):
            connection.sendall(b"?")
            answer = connection.recv(1)
        end = f"7f000001{connection.getsockname()[1]:04x}"
        waits = any("@tare-link1/" in name and end in name for name in open("/proc/net/unix"))
        is_linked = any("memfd:tare-link " in line for line in open("/proc/self/maps"))
    return answer, waits, is_linked
"""
LATELY = 0.25
"""Seconds, as negative_cache.rs has it."""


@contextmanager
def server(port: int, answer: str, *wrap: str) -> Iterator[int]:
    """Serves this port, of several; 0 is any."""
    command = [*wrap, sys.executable, "-c", SERVE, str(port), answer]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def test_server_that_is_not_linked_is_waited_for_once_in_a_while() -> None:
    script = f"""{EXCHANGE}
assert exchange(3) == (b"u", True, False)
while True:
    begin = time.monotonic()
    exchange(3)
    short = exchange(3)
    long = exchange(20)
    if time.monotonic() - begin < {LATELY}:
        break
assert short == (b"u", False, False), short
assert long == (b"u", True, False), long
"""
    with server(0, "u") as port:
        run = linked.run(sys.executable, "-c", script, str(port), eager=False)
    assert (run.code, run.errors, run.counts["links"]) == (0, "", 0)


@pytest.mark.parametrize("exchanges", [3, 20])
def test_server_is_linked_again_beside_one_that_is_not(exchanges: int) -> None:
    """Short connections now and then; a long one always."""
    script = f"""{EXCHANGE}
while exchange(3)[0] != b"u":
    pass
answer, is_linked, limit = b"", False, time.monotonic() + {SECONDS // 2}
while answer != b"l" or not is_linked and {exchanges} == 3 and time.monotonic() < limit:
    answer, _, is_linked = exchange({exchanges})
assert is_linked
"""
    with server(0, "u") as port, server(port, "l", linked.LINK, "--"):
        run = linked.run(sys.executable, "-c", script, str(port), eager=False)
    assert (run.code, run.errors) == (0, "")
