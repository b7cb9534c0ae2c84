# SPDX-License-Identifier: Apache-2.0
"""A folder for what does not fit into memory: private, and locked while its process lives.

A killed process leaves its folder behind, and the next process removes it. Other users, and
containers with the same temporary directory, can put anything there under any name. So a folder is
removed only if
- it is a folder of this user (no symbolic link, no mount point) that no other user may enter;
- it holds a record of its own inode number, which Tare wrote when it made the folder;
- no process holds the lock of the record.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from tare.atomic_files import mount_of, opened

PREFIX = "tare-spill-"
RECORD = "inode"
OTHERS = 0o077


@cache
def spill_folder(parent: Path) -> Path:
    """The folder of this process in `parent`, removed at its exit. Raises OSError."""
    for left in parent.glob(f"{PREFIX}*"):
        remove_abandoned(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    # Stays open, and locked, until this process and all its forks have exited.
    record = os.open(folder / RECORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # A file system without locks: the folder is never removed by others.
        fcntl.flock(record, fcntl.LOCK_EX)
        # Last, so that a record is never seen without its lock.
        os.write(record, str(folder.stat().st_ino).encode())

    @atexit.register
    def leave() -> None:
        os.close(record)
        remove_abandoned(folder)

    return folder


def remove_abandoned(path: Path) -> bool:
    """Whether it was a folder that Tare made and that no process uses, and is removed.

    Everything else is left as it is.
    """
    # A tree too deep for Python's own removal is a RecursionError.
    with suppress(OSError, RecursionError), _folder(path) as folder:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid() or status.st_mode & OTHERS:
            return False
        with _opened(RECORD, 0, folder) as record:
            if os.read(record, 32) != str(status.st_ino).encode():
                return False
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Relative to what was checked, since the path may meanwhile name something else.
            shutil.rmtree(".", ignore_errors=True, dir_fd=folder)
            path.rmdir()
            return True
    return False


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """The descriptor of a folder in the file system of its parent. Raises OSError.

    Another user may have mounted a file system there whose server does not answer: only the kernel
    is asked whether it is one.
    """
    with (
        opened(path.parent) as parent,
        _opened(path.name, os.O_PATH | os.O_DIRECTORY, parent) as place,
    ):
        if mount_of(place) != mount_of(parent):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(path))
        with _opened(".", os.O_DIRECTORY, place) as folder:
            yield folder


@contextmanager
def _opened(path: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    """A descriptor of what is at the path itself, not behind a link. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
