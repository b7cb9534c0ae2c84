# SPDX-License-Identifier: Apache-2.0
"""kill -9 of one end of a link in the middle of a stream, and what the other end sees.

`python -m tests.link.killed VICTIM WAIT UNREAD` kills one that `sends` or `receives`.
"""

import mmap
import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from tests.link import linked
from tests.once import OUT, compiled, shared
from tests.waiting import wait_for

SOURCE = Path(__file__).with_suffix(".c")
VICTIMS, WAITS = ("sends", "receives"), ("call", "poll", "epoll")
BEFORE = 5_000_000
"""Bytes that are received before the kill."""
IN_RING = 50_000
"""Unread bytes that find room in a ring of 64 KiB."""
TAKEN_BACK, GIVEN_BACK = -1, -2
"""The receiver stops, so the sender takes bytes back that TCP does not accept; and before it stops,
the receiver gives its connection back to TCP."""
WAITING_CALLS = {"7", "22", "44", "46", "73", "206", "211", "232", "271", "281"}
"""poll, ppoll, epoll's, sendto and sendmsg: their numbers on x86-64 and aarch64."""


@dataclass(frozen=True)
class Seen:
    """What the survivor saw: the last of `sent` and `received` bytes, then the end or an error."""

    sent: int
    received: int
    what: str
    after_ms: float
    """From the end of the killed process; a survivor that saw it at once has 0."""
    survivor: linked.Linked


def kill(victim: str, wait: str, unread: int) -> Seen:
    """Kills one end; raises AssertionError if the other one gets wrong bytes, or no end.

    The sender lets `unread` bytes wait for the receiver: 0 is as many as its calls accept. With
    `TAKEN_BACK` and `GIVEN_BACK` it is killed while it waits for a receiver that has stopped.
    """
    options = ("-O2", "-Wall", "-Wextra", "-Werror", "-o", OUT)
    program = str(compiled("killed", "cc", *options, SOURCE))
    survives = VICTIMS[1 - VICTIMS.index(victim)]
    with NamedTemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        counts = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        survivor = linked.start(program, "serve", survives, wait, file.name, str(unread))
        assert survivor.stdout is not None
        _, port = (survivor.stdout.readline().strip() for _ in range(2))
        killed = linked.start(program, "connect", victim, wait, file.name, str(unread), port)
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        pidfd = os.pidfd_open(pid)
        try:
            wait_for(lambda: struct.unpack_from("q", counts, 8)[0] >= BEFORE, "the stream")
            if unread < 0:
                wait_for(lambda: struct.unpack_from("q", counts, 16)[0] == 1, "the receiver")
                wait_for(lambda: waits(pid), "a sender that waits")
            os.kill(pid, signal.SIGKILL)
            select.select([pidfd], [], [])
            ended_ns = time.monotonic_ns()
            struct.pack_into("q", counts, 24, 1)
            seen = linked.ended(survivor)
        finally:
            os.close(pidfd)
            for process in (survivor, killed):
                with suppress(ProcessLookupError):
                    process.kill()
            killed.communicate()
        sent, received = struct.unpack_from("qq", counts)
    assert (seen.code, seen.errors) == (0, ""), seen
    _, what, at_ns = seen.output.split()
    return Seen(sent, received, what, max(0, int(at_ns) - ended_ns) / 1e6, seen)


def waits(pid: int) -> bool:
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] in WAITING_CALLS


if __name__ == "__main__":
    with shared():
        print(kill(sys.argv[1], sys.argv[2], int(sys.argv[3])))
