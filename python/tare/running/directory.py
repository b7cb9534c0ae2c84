# SPDX-License-Identifier: Apache-2.0
"""The runtime directory: where processes of Tare find each other. Only its user can write to it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tare.errors import InputError
from tare.files import opened

ROOTS = Path("/run/tare")
"""Root's directory. Every user may reach the sockets in it."""
FOR_ALL = 0o755
OWN = 0o700


def make_runtime_directory() -> Path:
    """Creates the directory unless it exists, as `tare_command::runtime` does.

    Raises InputError as `opened_runtime_directory` does.
    """
    path = runtime_directory()
    with suppress(FileExistsError):
        path.mkdir(_mode(path))
        path.chmod(_mode(path))  # whatever the umask is
    with opened_runtime_directory():
        return path


@contextmanager
def opened_runtime_directory() -> Iterator[int]:
    """The descriptor of the runtime directory, to open what is in it.

    Raises InputError if another user owns it or can write to it, OSError if it does not exist.
    """
    path = runtime_directory()
    with opened_own(path, _mode(path)) as descriptor:
        yield descriptor


@contextmanager
def opened_own(path: Path, mode: int, within: int | None = None) -> Iterator[int]:
    """The descriptor of a directory that only this user can write to.

    `mode` has the permissions that it may have. `within` is the descriptor of its parent. Raises
    InputError if it is a link, or if another user owns it or can write to it.
    """
    name = path if within is None else path.name
    # O_PATH also opens what another user does not let this user read.
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        if fault := _fault(os.fstat(descriptor), mode):
            raise InputError(f"{path}: {fault}")
        with opened(Path(f"/proc/self/fd/{descriptor}")) as directory:
            yield directory
    finally:
        os.close(descriptor)


def runtime_directory_fault() -> str | None:
    """Why what is in the runtime directory is ignored, and what to do; None if it is not."""
    try:
        with suppress(OSError), opened_runtime_directory():
            pass
    except InputError as error:
        return str(error)
    return None


def runtime_directory() -> Path:
    """The directory of sockets, as `tare_command::runtime` has it. It need not exist."""
    user = os.geteuid()
    if user == 0:
        return ROOTS if ROOTS.parent.is_dir() else Path("/tmp/tare-0")
    session = Path(os.environ.get("XDG_RUNTIME_DIR") or ".")
    with suppress(OSError):
        status = session.lstat()
        if session.is_absolute() and stat.S_ISDIR(status.st_mode) and status.st_uid == user:
            return session / "tare"
    return Path(f"/tmp/tare-{user}")


def _mode(path: Path) -> int:
    return FOR_ALL if path == ROOTS else OWN


def _fault(status: os.stat_result, mode: int) -> str | None:
    user = os.geteuid()
    if not stat.S_ISDIR(status.st_mode):
        return "not a directory; remove it"
    if status.st_uid != user:
        return (
            f"owned by user {status.st_uid} (expected {user}). Remove it, or set XDG_RUNTIME_DIR"
            " to a directory that you own"
        )
    if status.st_mode & 0o777 & ~mode:
        found = status.st_mode & 0o777
        return f"mode {found:o} (expected {mode:o}); run chmod {mode:o} on it"
    return None
