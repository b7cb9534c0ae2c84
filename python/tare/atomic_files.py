# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all, also in folders that other users can write to."""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from tare.errors import InputError

PRIVATE = 0o600
EVERYBODY = 0o666
_ACCESS_LIST = "system.posix_acl_access"


def replace(path: Path, text: str, within: int | None = None) -> None:
    """Replaces the contents of a file; the old contents stay until the new ones are on disk.

    `within` as in `new_file`. Raises OSError with the name of the file.
    """
    with new_file(path, within) as file:
        file.write(text.encode())


@contextmanager
def new_file(path: Path, within: int | None = None) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` if the block ends without an error.

    It is created under a random name, private while it is written, in the directory that `path`
    has now; or in `within`, the descriptor of the directory that it had before. Links and files
    that another user puts into the directory are neither followed nor written to; a link at
    `path` itself is replaced. Raises OSError with the name of the file.
    """
    try:
        with nullcontext(within) if within is not None else opened(path.parent) as folder:
            name = f".{path.name}.{secrets.token_hex(8)}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, PRIVATE, dir_fd=folder)
            made = os.fstat(descriptor)
            try:
                with os.fdopen(descriptor, "w+b") as file:
                    yield file
                    file.flush()
                    _permit(file.fileno(), path.name, folder)
                    os.fsync(file.fileno())
                os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    remove(name, made, folder)
                raise
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def created(path: Path, within: int | None = None) -> Iterator[BinaryIO]:
    """A new file, which is deleted again if the block ends with an error.

    `within` as in `new_file`. Raises FileExistsError if `path` exists, also as a link, else
    OSError.
    """
    place = nullcontext(within) if within is not None else opened(path.parent)
    with named(path), place as folder:
        descriptor = regular_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
        try:
            # The descriptor stays for the comparison: a full disk is noticed when the file closes.
            with os.fdopen(os.dup(descriptor), "wb") as file:
                yield file
        except BaseException:
            with suppress(OSError):
                remove(path.name, os.fstat(descriptor), folder)
            raise
        finally:
            os.close(descriptor)


def remove(name: str, status: os.stat_result, folder: int) -> bool:
    """Deletes the file of this `status`, and returns whether it still had the name.

    `folder` is the descriptor of its directory. Raises OSError.
    """
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not os.path.samestat(found, status):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def empty(path: Path) -> None:
    """Creates an empty file, or empties the file. Raises as `regular_file` does."""
    os.close(regular_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


def regular_file(path: Path, flags: int, within: int | None = None) -> int:
    """The descriptor of a regular file, opened with `flags`. `within` as in `new_file`.

    Another user may have put anything there: a link is not followed, and neither a pipe nor a
    device is waited for; they raise InputError. Raises OSError with the name of the file.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    name = path if within is None else path.name
    try:
        descriptor = os.open(name, flags, EVERYBODY, dir_fd=within)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            error.filename = str(path)
            raise
    what = "is a symbolic link" if path.is_symlink() else "is not an ordinary file"
    raise InputError(f"{path}: {what}")


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Adds the file's name to an OSError without one: a full disk is noticed by writing, and
    Python names no file then."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The descriptor of a directory, which stays the same one under any name. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def mount_of(descriptor: int) -> str:
    """The ID of the mount that has an open file. No file system is asked: one of FUSE need not
    answer."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("mnt_id:")).split()[1]


def _permit(descriptor: int, name: str, folder: int) -> None:
    """Gives a new file the permissions of the file that it replaces, if that is this user's; else
    the usual ones."""
    mode = EVERYBODY & ~_umask()
    with suppress(FileNotFoundError):
        replaced = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            status = os.fstat(replaced)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                mode = _kept(descriptor, replaced, status)
        finally:
            os.close(replaced)
    os.fchmod(descriptor, mode)


def _kept(descriptor: int, replaced: int, status: os.stat_result) -> int:
    """Gives a new file the group and the access control list of another; returns its mode."""
    mode = stat.S_IMODE(status.st_mode) & EVERYBODY
    try:
        if os.fstat(descriptor).st_gid != status.st_gid:
            os.fchown(descriptor, -1, status.st_gid)
        _keep_access_list(descriptor, f"/proc/self/fd/{replaced}")
    except OSError:
        # Its group, and the users of its list, are others now: they get what both had.
        both = mode >> 3 & mode & 0o7
        return mode & PRIVATE | both << 3 | both
    return mode


def _keep_access_list(descriptor: int, replaced: str) -> None:
    """Gives a new file the access control list (acl(5)) of another, or none if that has none: what
    its folder gave it says nothing of this file. Raises OSError."""
    missing = (errno.ENODATA, errno.EOPNOTSUPP)
    try:
        os.setxattr(descriptor, _ACCESS_LIST, os.getxattr(replaced, _ACCESS_LIST))
    except OSError as error:
        if error.errno not in missing:
            raise
        try:
            os.removexattr(descriptor, _ACCESS_LIST)
        except OSError as none:
            if none.errno not in missing:
                raise


def _umask() -> int:
    """From /proc, since Python can read it only by changing it for all threads."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"^Umask:\s*([0-7]+)$", status, re.MULTILINE)
    return int(found[1], 8) if found else EVERYBODY & ~PRIVATE
