# SPDX-License-Identifier: Apache-2.0
"""Calls on a linked connection return what they return on a plain one."""

import subprocess
from pathlib import Path

import pytest
from tests.link import linked, support_table
from tests.once import OUT, compiled
from tests.waiting import SECONDS

# Programs of calls whose cases take a connection back to TCP for good.
LEFT = {
    "exec": 7, "fork": 4, "handed_on": 17, "one_shot": 3, "options": 11, "polls": 1,
    "signal_masks": 1, "syscalls": 2,
}  # fmt: skip
# Bytes that their cases send while nobody reads, or so fast that a ring may be full.
BY_TCP = {"calls": 13 << 20, "close": 12 << 20, "sendfile": 9 << 20, "threads": 2 << 20}


VARIANTS = {
    "": ["-O1"],
    "fortified": ["-O2", "-D_FORTIFY_SOURCE=2"],
    "IPv6": ["-O1", "-DIPV6"],
}
PROGRAMS = [
    pytest.param(
        source,
        variant,
        marks=[pytest.mark.exhaustive] if variant else [],
        id="-".join(filter(None, (source.stem, variant))),
    )
    for source in support_table.CALLS
    for variant in VARIANTS
]


@pytest.mark.parametrize(("source", "variant"), PROGRAMS)
def test_calls_return_the_same_with_and_without_a_link(source: Path, variant: str) -> None:
    options = (*VARIANTS[variant], "-w", "-pthread", "-o", OUT)
    calls = str(compiled(source.stem, "cc", *options, source))
    plain = subprocess.run([calls], check=True, capture_output=True, text=True, timeout=SECONDS)
    run = linked.run(calls)
    assert run.output.splitlines() == plain.stdout.splitlines()
    assert run.code == 0
    counts = run.counts
    connections = int(run.output.split()[-1])
    # Both ends of each connection, and none failed.
    assert counts["links"] == 2 * connections > 0
    assert (counts["refused"], counts["reset"]) == (0, 0)
    if source.stem == "handed_on":
        assert counts["upgrades"] >= 2 * connections
    else:
        linked.assert_carried(counts, 2 * connections, BY_TCP.get(source.stem, 0))
    assert counts["left"] == LEFT.get(source.stem, 0)
    # More than the bytes that each connection begins with.
    assert counts["ring_receives"] >= 4 * connections


def test_connection_of_one_request_stays_tcp() -> None:
    program = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
near.sendall(b"request")
assert far.recv(100) == b"request"
far.sendall(b"re")
far.sendall(b"ply")
assert near.recv(5, socket.MSG_WAITALL) == b"reply"
ports = ["%04x" % end.getsockname()[1] for end in (near, far)]
names = [line for line in open("/proc/net/unix") if "tare-link" in line]
# Neither end waits for the other.
assert not [name for name in names if all(port in name for port in ports)], names
far.close()
assert near.recv(100) == b""
"""
    run = linked.run("/usr/bin/python3", "-c", program, eager=False)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["links"] == 0
    assert run.counts["programs"] == 1
