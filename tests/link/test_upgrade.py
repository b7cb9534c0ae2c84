# SPDX-License-Identifier: Apache-2.0
"""Which sockets become links without --eager, and which never do."""

import pytest
from tests.link import linked
from tests.link.programs import PYTHON

ONE_WAY = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
def send(count):
    for number in range(count):
        block = bytes([number % 256]) * 1024
        near.sendall(block)
        assert far.recv(1024, socket.MSG_WAITALL) == block
def is_linked():
    return any("memfd:tare-link " in line for line in open("/proc/self/maps"))
send(15)
assert not is_linked()
send(4)
assert is_linked()
send(1000)
"""


def test_bytes_that_go_one_way_use_shared_memory_after_16_kilobytes() -> None:
    run = linked.run(PYTHON, "-c", ONE_WAY, eager=False)
    assert (run.code, run.errors) == (0, "")
    # The other end sends nothing: its direction stays as it is.
    assert (run.counts["links"], run.counts["reset"]) == (2, 0)
    assert run.share >= linked.SHARE


OTHERS = """
import socket, sys
family, kind = (getattr(socket, name) for name in sys.argv[1:3])
if family == socket.AF_UNIX:
    near, far = socket.socketpair(family, kind)
else:
    near, far = socket.socket(family, kind), socket.socket(family, kind)
    address = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    far.bind((address, 0)), near.bind((address, 0))
    near.connect(far.getsockname()), far.connect(near.getsockname())
for number in range(200):
    block = bytes([number]) * (1 + number * 20)
    near.send(block)
    assert far.recv(10_000) == block
    far.send(block[::-1] + b"end")
    assert near.recv(10_000, socket.MSG_PEEK) == block + b"end"
    assert near.recv(10_000) == block + b"end"
"""


@pytest.mark.parametrize(
    "socket",
    [
        ("AF_INET", "SOCK_DGRAM"),
        ("AF_INET6", "SOCK_DGRAM"),
        ("AF_UNIX", "SOCK_STREAM"),
        ("AF_UNIX", "SOCK_DGRAM"),
        ("AF_UNIX", "SOCK_SEQPACKET"),
    ],
    ids="-".join,
)
def test_other_sockets_than_tcps_are_left_alone(socket: tuple[str, str]) -> None:
    run = linked.run(PYTHON, "-c", OTHERS, *socket)
    assert (run.code, run.errors) == (0, "")
    counts = {name: count for name, count in run.counts.items() if count}
    assert counts == {"programs": 1}
