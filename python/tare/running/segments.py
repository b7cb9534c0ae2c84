# SPDX-License-Identifier: Apache-2.0
"""Segments of shared memory that a process has open (docs/formats/shm.md).

Only the header is read, with pread: a file that its owner truncates is an error, no SIGBUS.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from tare.atomic_files import mount_of

MAGIC = b"TAREshm1"
HEADER = struct.Struct("<8sIIQQII")
Kind = Literal["hook", "link", "log"]
KINDS: dict[int, Kind] = {2: "hook", 3: "log", 5: "link"}
"""The hook's other segment, the rules, is used by the same programs."""
LINKS = tuple(
    f"/memfd:{name} (deleted)" for name in ("tare-hook-shared", "tare-link-statistics", "tare-log")
)
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
MODE = stat.S_IFREG | 0o644
LOCK = struct.Struct("hhqqi4x")


@dataclass(frozen=True)
class Segment:
    """The header of one segment, and who serves it."""

    kind: Kind
    owner: tuple[int, int]
    """PID in its own namespace, and start time in clock ticks after boot."""
    server: int | None
    """PID of the process that holds its lock; 0 in another namespace."""


def segments(pid: int) -> Iterator[Segment]:
    """Those that the process has open; none of a process that this user may not look into."""
    seen = set()
    with suppress(OSError):
        for path in _descriptors(pid):
            with suppress(OSError, struct.error):
                if str(path.readlink()) in LINKS:
                    inode, found = _opened(path)
                    if found is not None and inode not in seen:
                        seen.add(inode)
                        yield found


def _descriptors(pid: int) -> Iterator[Path]:
    """Links to what the process has open. If its first thread has exited, others have the files."""
    yield from Path(f"/proc/{pid}/fd").iterdir()
    if b"\nState:\tZ" in Path(f"/proc/{pid}/status").read_bytes():
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield from (task / "fd").iterdir()


def _opened(path: Path) -> tuple[int, Segment | None]:
    """As `tare_shm::found`: the file is checked before it is opened."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        # Every other question takes for ever if FUSE has the file and its server does not answer.
        if mount_of(place) != _memory():
            return 0, None
        status = os.fstat(place)
        if status.st_mode != MODE or status.st_nlink:
            return status.st_ino, None
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(f"/proc/self/fd/{place}", flags)
    finally:
        os.close(place)
    try:
        if fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & SEALS != SEALS:
            return status.st_ino, None
        return status.st_ino, _read(descriptor)
    finally:
        os.close(descriptor)


@cache
def _memory() -> str:
    """The mount that has all memfds: what is on another mount is not opened."""
    descriptor = os.memfd_create("tare-ps", os.MFD_CLOEXEC)
    try:
        return mount_of(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Segment | None:
    header = os.pread(descriptor, HEADER.size, 0)
    magic, _, kind, _, owner_start, owner_pid, _ = HEADER.unpack(header)
    if magic != MAGIC or kind not in KINDS:
        return None
    return Segment(KINDS[kind], (owner_pid, owner_start), _server(descriptor))


def _server(descriptor: int) -> int | None:
    wanted = LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = LOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    return None if kind == fcntl.F_UNLCK else int(pid)
