# SPDX-License-Identifier: Apache-2.0
"""Programs under tare-link, and what it counted."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import SECONDS

from tare.native import native

LINK = native("bin", "tare-link")
PAIR = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
def linked():
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    for _ in range(4):
        near.sendall(b"question")
        assert far.recv(8) == b"question"
        far.sendall(b"answer")
        assert near.recv(6) == b"answer"
    exchange(near, far, 1024)
    return near, far
def exchange(near, far, length):
    for one, other in (near, far), (far, near):
        one.sendall(bytes(length))
        assert other.recv(length, socket.MSG_WAITALL) == bytes(length)
"""
"""For programs in Python: `linked()` makes a connection that is linked; `exchange()` sends so many
bytes both ways, which all find room in a ring of 64 KiB."""
SHARE = 0.95
"""Of the bytes of a linked connection, that go through rings at least."""


@dataclass(frozen=True)
class Linked:
    """A program that has ended."""

    code: int
    output: str
    errors: str
    counts: dict[str, int]
    reasons: dict[str, dict[str, int]]
    """Why connections stayed TCP, left, and were downgraded: counts by codes."""

    @property
    def share(self) -> float:
        """What part of the bytes that were sent went through rings."""
        return share(self.counts)


def share(counts: Mapping[str, int], tcp: int = 0) -> float:
    """What part of the bytes that were sent went through rings, apart from `tcp` bytes."""
    ring, other = counts["ring_bytes_sent"], max(0, counts["tcp_bytes_sent"] - tcp)
    return ring / max(1, ring + other)


def assert_carried(counts: Mapping[str, int], links: int | None = None, tcp: int = 0) -> None:
    """These links, or at least one, were made and upgraded, and their bytes went through rings.

    `tcp` bytes may have been TCP's: what a test sends while a ring is full, which depends on how
    fast the other end reads, and calls that need TCP.
    """
    assert counts["links"] > 0
    assert links is None or counts["links"] == links
    assert counts["upgrades"] >= counts["links"]
    assert share(counts, tcp) >= SHARE, counts


def run(
    *command: str, eager: bool = True, options: Sequence[str] = (), log: Path | None = None
) -> Linked:
    """Runs a program to its end."""
    return ended(start(*command, eager=eager, options=options, log=log))


def start(
    *command: str, eager: bool = True, options: Sequence[str] = (), log: Path | None = None
) -> subprocess.Popen[str]:
    """Starts a program; `log` gets what becomes of each connection."""
    options = [*options, "--eager"] if eager else options
    return subprocess.Popen(
        [LINK, *options, "--json", "--", *command],
        env={**os.environ, "TARE_LINK_LOG": str(log)} if log else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Linked:
    output, errors = process.communicate(timeout=SECONDS)
    *lines, last = errors.splitlines()
    counts = json.loads(last)
    reasons = {key: counts.pop(f"{key}_because") for key in ("stayed_tcp", "left", "downgraded")}
    assert sum(reasons["left"].values()) == counts["left"]
    assert sum(reasons["downgraded"].values()) == counts["downgrades"]
    return Linked(process.returncode, output, "\n".join(lines), counts, reasons)
