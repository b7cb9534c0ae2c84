# SPDX-License-Identifier: Apache-2.0
"""A segment of tare log whose content is anything, by the layout of include/tare_shm.h."""

import fcntl
import mmap
import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HEADER = (Path(__file__).parents[3] / "include" / "tare_shm.h").read_text()
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
RINGS, CHANNELS = 1024, 1 << 14
FORMATS = {"Q": 8, "I": 4}


def at(type_: str, field: str) -> int:
    """An offset of the header."""
    found = re.search(rf"^TARE_SHM_AT\({type_}, {field}, (\d+)\);", HEADER, re.MULTILINE)
    assert found, (type_, field)
    return int(found[1])


def size(type_: str) -> int:
    found = re.search(rf"^TARE_SHM_SIZE\({type_}, (\d+)\);", HEADER, re.MULTILINE)
    assert found, type_
    return int(found[1])


def sealed(name: str, content: bytes, length: int | None = None) -> int:
    """Memory that begins with this content."""
    fd = os.memfd_create(name, os.MFD_ALLOW_SEALING)
    os.fchmod(fd, 0o644)
    os.truncate(fd, length or len(content))
    os.pwrite(fd, content, 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Memory that is made and sockets that are connected meanwhile are this user's."""
    before = os.geteuid()
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(before)


class Segment:
    """That of a program with so many words in a ring."""

    def __init__(self, ring_words: int = 1 << 13) -> None:
        self.ring_bytes = size("tare_log_ring") + 8 * ring_words
        length = size("tare_log_process") + RINGS * self.ring_bytes
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        header = struct.pack("<8sIIQQII", b"TAREshm1", 4, 3, length, start, os.getpid(), 0)
        self.fd = sealed("tare-log", header, length)
        self.write("ring_words", "Q", ring_words)
        self.write("rings", "I", RINGS)
        self.write("state", "I", 1)
        self.write("channels_used", "I", 1)

    def write(self, field: str, form: str, value: int) -> None:
        """A field of the process."""
        os.pwrite(self.fd, struct.pack(form, value), at("tare_log_process", field))

    def name_socket(self, path: Path) -> None:
        """Where the program finds its collector: at this path, if its own has died."""
        os.pwrite(self.fd, os.fsencode(path), at("tare_log_process", "socket"))

    def map(self) -> mmap.mmap:
        """A program that has no segment in its memory is taken for another one after a while."""
        return mmap.mmap(self.fd, mmap.PAGESIZE)

    def open_channels(self, name_length: int) -> None:
        """All that there can be, with the first bytes of the names as their name."""
        entry = struct.pack("<4I", 1, 1, 0, name_length)
        entries = entry.ljust(size("tare_log_process_channel"), b"\0") * (CHANNELS - 1)
        first = at("tare_log_process", "channels") + size("tare_log_process_channel")
        os.pwrite(self.fd, entries, first)
        self.write("channels_used", "I", CHANNELS)

    def ring(self, place: int) -> int:
        """Where its indices are: first `head`."""
        return size("tare_log_process") + place * self.ring_bytes

    def head(self, place: int, value: int) -> None:
        os.pwrite(self.fd, struct.pack("Q", value), self.ring(place))

    def tail(self, place: int) -> int:
        tail: int = struct.unpack("Q", os.pread(self.fd, 8, self.ring(place) + 128))[0]
        return tail

    def hand_over(self, path: str) -> socket.socket:
        """The connection, when the collector has answered or closed it."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        socket.send_fds(connection, [b"\1"], [self.fd])
        connection.recv(1)
        return connection
