# SPDX-License-Identifier: Apache-2.0
"""Whose files and links are trusted: root's and this user's, as `trust.rs` of native commands."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tare.atomic_files import mount_of, new_file, opened
from tare.errors import InputError
from tare.proc import proc_lines

ROOT = 0
UID_MAP = Path("/proc/self/uid_map")
OVERFLOW = Path("/proc/sys/kernel/overflowuid")
MOUNTS = Path("/proc/self/mountinfo")
MOST_LINKS = 40
"""As many as the kernel follows."""
_ITSELF = os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a link, and not what it leads to."""


def maps_all_users() -> bool:
    """Whether each user has an ID here, as outside of user namespaces."""
    return UID_MAP.read_text(encoding="utf-8").split()[1:] == ["0", str(2**32 - 1)]


def overflow_user() -> int:
    """The ID of all users without an ID of their own."""
    return int(OVERFLOW.read_text(encoding="utf-8"))


def is_trusted(user: int) -> bool:
    """Whether this is root or this user. The ID of all users that have none is nobody's."""
    own = user == os.geteuid() and (user != overflow_user() or maps_all_users())
    return user == ROOT or own


def server_of(descriptor: int) -> int | None:
    """The user who mounted the file system of an open file, if it is one of FUSE; else None.

    Its server shows what owners it wants, and need not answer: only the kernel is asked. Raises
    OSError if the file system was unmounted meanwhile.
    """
    return server_of_mount(mount_of(descriptor))


def server_of_mount(mount: str) -> int | None:
    """As `server_of`, by the ID of the mount."""
    for line in proc_lines(MOUNTS.read_bytes()):
        place, _, file_system = line.partition(" - ")
        if place.split(" ")[0] != mount:
            continue
        kind, *_, options = file_system.split(" ")
        users = [option for option in options.split(",") if option.startswith("user_id=")]
        return int(users[0].removeprefix("user_id=")) if kind.startswith("fuse") and users else None
    with opened(Path("/")) as root:
        if mount == mount_of(root):  # A root folder that is no mount point is not listed.
            return None
    raise OSError(errno.ESTALE, "was unmounted while it was looked at")


@contextmanager
def trusted_folder(path: Path, *, create: bool = False) -> Iterator[int]:
    """The descriptor of a folder for output, which stays the same folder under any name.

    With `create`, missing folders are made. Raises InputError for a link of another user on the
    way: that user could choose where files are written. Raises OSError with the name of the folder.
    """
    try:
        descriptor = _walked(path, create)
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def new_output(path: Path) -> Iterator[BinaryIO]:
    """As `atomic_files.new_file`, but raises InputError for a link of another user on the way."""
    try:
        with trusted_folder(path.parent) as folder, new_file(path, folder) as file:
            yield file
    except OSError as error:
        error.filename = str(path)
        raise


def _walked(path: Path, create: bool) -> int:
    names, links = [*reversed(path.parts)], 0
    here = os.open(".", os.O_PATH | _ITSELF)
    try:
        while names:
            there = _entered(names.pop(), here, create)
            try:
                if not stat.S_ISLNK(os.fstat(there).st_mode):
                    here, there = there, here
                    continue
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                names += reversed(_followed(there, path).parts)
            finally:
                os.close(there)
        return os.open(".", os.O_PATH | os.O_DIRECTORY | _ITSELF, dir_fd=here)
    finally:
        os.close(here)


def _entered(name: str, here: int, create: bool) -> int:
    try:
        return os.open(name, os.O_PATH | _ITSELF, dir_fd=here)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=here)
    return os.open(name, os.O_PATH | _ITSELF, dir_fd=here)


def _followed(link: int, path: Path) -> Path:
    """Where a link on the way leads. Raises InputError if another user has made it."""
    if (server := server_of(link)) is not None and not is_trusted(server):
        raise InputError(f"{path}: a link on the way was mounted by user {server}; name another")
    if not is_trusted(user := os.fstat(link).st_uid):
        raise InputError(f"{path}: passes a symbolic link of user {user}; name another")
    return Path(os.readlink("", dir_fd=link))
