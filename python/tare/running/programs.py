# SPDX-License-Identifier: Apache-2.0
"""Programs that share memory with a part of Tare, found in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tare.proc import proc_lines
from tare.running.segments import KINDS, Kind, Segment, segments

PROC = Path("/proc")
OVERFLOW = PROC / "sys/kernel/overflowuid"


@dataclass(frozen=True)
class Program:
    """A program under the hook or the link, or a program that logs."""

    pid: int
    command: str
    """Its arguments, joined by blanks; of another user's program only the program."""
    kind: Kind
    since: float
    """Start of the process in seconds since the Unix epoch."""
    collector: int | None
    """PID of the process that serves its memory; 0 if it is in another PID namespace, None if
    there is none."""


def programs() -> list[Program]:
    """All programs that this user may see, by PID."""
    found = [program for pid in _pids() for program in _of(pid)]
    return sorted(found, key=lambda program: (program.pid, program.kind))


def _of(pid: int) -> Iterator[Program]:
    for kind in KINDS.values():
        mine = [
            segment for segment in segments(pid) if segment.kind == kind and _uses(pid, segment)
        ]
        for segment in mine[:1]:
            with suppress(OSError, ValueError):
                yield Program(pid, _command(pid), kind, _start(pid), segment.server)


def _uses(pid: int, segment: Segment) -> bool:
    """Whether the process is a program, and not the collector or the child of a program."""
    if segment.server == pid:
        return False
    return segment.kind != "log" or segment.owner == (_own_pid(pid), start_ticks(pid))


def _pids() -> Iterator[int]:
    return (int(path.name) for path in PROC.iterdir() if path.name.isdecimal())


def _command(pid: int) -> str:
    """Its arguments. Of a process of another user, its program and `...`; if that may not be seen,
    its name in brackets.

    The user of a process can hold everybody who asks for its arguments: they wait for a lock of its
    memory, which is kept while a file of FUSE is unmapped whose server does not answer.
    """
    # Stays that of this process if the PID is given to another process meanwhile.
    folder = os.open(PROC / str(pid), os.O_RDONLY | os.O_DIRECTORY)
    try:
        words = b""
        if _is_own(_read(folder, "status")):
            words = _read(folder, "cmdline").rstrip(b"\0").replace(b"\0", b" ")
        else:
            with suppress(OSError):
                words = os.fsencode(os.readlink("exe", dir_fd=folder)) + b" ..."
        words = words or b"[" + _read(folder, "comm").rstrip(b"\n") + b"]"
        return words.decode(errors="replace")
    finally:
        os.close(folder)


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
        return file.read()


def _is_own(status: bytes) -> bool:
    """Whether all users of a process are this user. All users without an ID of their own have the
    overflow ID, so it is nobody's."""
    users = next(line.split()[1:] for line in proc_lines(status) if line.startswith("Uid:"))
    own = os.geteuid()
    return {*map(int, users)} == {own} and own != int(OVERFLOW.read_text(encoding="utf-8"))


def _start(pid: int) -> float:
    boot = next(
        int(line.split()[1])
        for line in (PROC / "stat").read_text(encoding="utf-8").splitlines()
        if line.startswith("btime ")
    )
    return boot + start_ticks(pid) / os.sysconf("SC_CLK_TCK")


def start_ticks(pid: int) -> int:
    """Start time of a process in clock ticks after boot. Raises OSError if there is none."""
    stat = (PROC / str(pid) / "stat").read_bytes()
    # The name of the program may contain blanks and parentheses.
    return int(stat.rpartition(b")")[2].split()[19])


def _own_pid(pid: int) -> int:
    """The PID in the innermost PID namespace of the process."""
    for line in proc_lines((PROC / str(pid) / "status").read_bytes()):
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid
