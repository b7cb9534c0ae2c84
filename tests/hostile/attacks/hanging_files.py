# SPDX-License-Identifier: Apache-2.0
"""hanging_files.py FOLDER SOCKET: serves a file system of FUSE there as user nobody, and uses it:
hands a file over, which has the name of a segment, and has a segment of a program whose collector
has died. It answers neither who looks for the socket of that collector nor who looks at the file or
closes it. Started as root to mount it."""

import ctypes
import errno
import mmap
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from tests.hostile.attacks.segment import Segment
from tests.waiting import SECONDS

NOBODY = 65_534
HEADER = struct.Struct("<IIQQ")
ANSWER = struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, WRITE = 1, 2, 3, 5, 14, 15, 16
STATFS, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 17, 25, 26, 36, 42
NEVER_ANSWERED = (FORGET, WRITE, FLUSH, INTERRUPT, BATCH_FORGET)
ROOT, FILE = 1, 2
LINK = "memfd:tare-log (deleted)"
"""As /proc shows the descriptor of a segment, but for the first slash."""
DETACH = 2
PDEATHSIG = 1


def attributes(inode: int, owner: int = NOBODY, mode: int = 0o100666) -> bytes:
    if inode == ROOT:
        mode = 0o40755 if owner == NOBODY else 0o40700
    size = mmap.PAGESIZE
    return ATTRIBUTES.pack(inode, size, *[0] * 7, mode, 1, owner, owner, 0, size, 0)[:88]


def mount(folder: str) -> int:
    """Mounts a file system there as `fusermount` does for user nobody; the server's descriptor."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hanging", os.fsencode(folder), b"fuse", 0, options.encode()) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    return device


def serve(device: int, owner: int = NOBODY, hangs: bool = True, link: str = "") -> None:
    """Answers until the test ends, however it does: who waits for an answer gets an error then.

    Every file is a symbolic link if `link` says where it leads.
    """
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL)
    signal.alarm(2 * SECONDS)
    mode = 0o120777 if link else 0o100666
    while True:
        request = os.read(device, 1 << 20)
        _, operation, number, inode = HEADER.unpack_from(request)
        answers = {
            LOOKUP: struct.pack("<5Q", FILE, 0, 0, 0, 0) + attributes(FILE, owner, mode),
            GETATTR: struct.pack("<2Q", 0, 0) + attributes(inode, owner, mode),
            READLINK: os.fsencode(link),
            STATFS: bytes(80),
            OPEN: struct.pack("<2Q", 7, 0),
            READ: bytes(mmap.PAGESIZE),
            INIT: struct.pack("<4I2H3I", 7, 31, 1 << 16, 0, 10, 10, 1 << 16, 1, 0) + bytes(32),
        }
        is_slow = operation == LOOKUP and request[40:].startswith(b"slow")
        is_slow |= hangs and operation == GETATTR and inode == FILE
        if not is_slow and operation not in NEVER_ANSWERED:
            body = answers.get(operation, b"")
            error = 0 if operation in answers else -errno.ENOSYS
            os.write(device, ANSWER.pack(ANSWER.size + len(body), error, number) + body)


def use(folder: str, path: str, unmount: Callable[[bytes, int], int]) -> None:
    file = os.open(f"{folder}/{LINK}", os.O_RDWR)
    orphan = Segment()
    orphan.name_socket(Path("slow/socket"))
    memory = orphan.map()
    os.chdir(folder)
    # As `fusermount -u -z` does for every user. Links of /proc no longer show the folder then.
    assert unmount(os.fsencode(folder), DETACH) == 0
    become_nobody()
    print("ready", flush=True)
    sys.stdin.readline()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"\1"], [file])
        print("sent", flush=True)
        sys.stdin.readline()
    memory.close()


def become_nobody() -> None:
    os.setgid(NOBODY)
    os.setuid(NOBODY)


if __name__ == "__main__":
    device = mount(sys.argv[1])
    # Whoever uses the files is another process: when this one ends, they get an error.
    if os.fork() == 0:
        os.close(device)
        use(sys.argv[1], sys.argv[2], ctypes.CDLL(None, use_errno=True).umount2)
    else:
        become_nobody()
        serve(device)
