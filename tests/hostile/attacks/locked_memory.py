# SPDX-License-Identifier: Apache-2.0
"""locked_memory.py FOLDER SOCKET LINK: a process of user nobody that holds everybody who reads its
memory or asks what it has mapped: it maps something in place of a file of FUSE, so the lock of its
memory is kept until the server of the file answers, and that does not. It has what parts of Tare
look for: a segment of tare log, one of tare link that is a copy of the file LINK, and a TCP
connection.

If a collector listens at SOCKET, a child hands the segment of tare log over by a connection of the
process. If not, the segment says that the collector there has died. Started as root to mount the
file system. Prints the PID and the port when the memory is locked, and goes on after a line of
input."""

import ctypes
import mmap
import os
import socket
import struct
import sys
from pathlib import Path
from time import sleep

from tests.hostile.attacks.hanging_files import become_nobody, mount, serve
from tests.hostile.attacks.segment import Segment, sealed

FIXED = 0x10
PID = struct.Struct("=I")
OWNER = 32
"""The place of the PID in the header of a segment."""


def link_segment(copied: Path) -> int:
    """That of a run whose tare-link and whose program, which the name of the copy has, are this
    process."""
    content, own = copied.read_bytes(), PID.pack(os.getpid())
    linked = content.replace(PID.pack(int(copied.suffix[1:])), own)
    return sealed("tare-link-statistics", linked[:OWNER] + own + linked[OWNER + PID.size :])


def mapped(place: int | None, kind: int, file: int) -> int:
    """The address of a page."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    size, rights = ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE
    found: int = libc.mmap(ctypes.c_void_p(place), size, rights, kind, file, ctypes.c_long(0))
    return found


def await_lock(pid: int) -> None:
    """Until a process waits in the kernel, and cannot be interrupted."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "D":
        sleep(0.001)


def use(folder: str, path: str, link: str) -> None:
    segment = Segment()
    memory, _ = segment.map(), link_segment(Path(link))
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.socket()
    near.connect(listener.getsockname())
    far, _ = listener.accept()
    page = mapped(None, mmap.MAP_SHARED, os.open(f"{folder}/file", os.O_RDWR))
    ctypes.memset(page, 1, mmap.PAGESIZE)
    connection = socket.socket(socket.AF_UNIX)
    has_collector = Path(path).exists()
    if has_collector:
        connection.connect(path)
    else:
        segment.name_socket(Path(path))
    pid = os.getpid()
    if os.fork() > 0:
        mapped(page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED, -1)
        memory.close()
        return
    near.close()
    far.close()
    await_lock(pid)
    print(pid, listener.getsockname()[1], flush=True)
    if not sys.stdin.readline():
        return
    if has_collector:
        socket.send_fds(connection, [b"\1"], [segment.fd])
    print("sent", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    device = mount(sys.argv[1])
    # Whoever uses the files is another process: when this one ends, they get an error.
    if os.fork() == 0:
        os.close(device)
        become_nobody()
        use(*sys.argv[1:])
    else:
        become_nobody()
        serve(device, hangs=False)
