# SPDX-License-Identifier: Apache-2.0
"""The runtime directory: where processes of Tare find each other. Only its user can write to it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tare.atomic_files import opened
from tare.errors import InputError
from tare.trust import is_trusted, server_of

ROOTS = Path("/run/tare")
"""Root's directory. Every user may reach the sockets in it."""
FOR_ALL = 0o755
OWN = 0o700
_ITSELF = os.O_NOFOLLOW | os.O_CLOEXEC


def make_runtime_directory() -> Path:
    """Creates the directory unless it exists, as `tare_command::runtime` does.

    Raises InputError as `opened_runtime_directory` does.
    """
    path, is_new = runtime_directory(), False
    with suppress(FileExistsError):
        path.mkdir(_mode(path))
        is_new = True
    with opened_runtime_directory() as descriptor:
        if is_new:
            os.fchmod(descriptor, _mode(path))  # whatever the umask is
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
    InputError if it is a link, or if another user owns it, can write to it or has mounted it.
    """
    name = path if within is None else path.name
    # O_PATH also opens what another user does not let this user read.
    descriptor = os.open(name, os.O_PATH | _ITSELF, dir_fd=within)
    try:
        if fault := _fault(descriptor, mode):
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
        descriptor = os.open(session, os.O_PATH | _ITSELF)
        try:
            is_own = _untrusted_server(descriptor) is None and _is_own_folder(descriptor)
            if session.is_absolute() and is_own:
                return session / "tare"
        finally:
            os.close(descriptor)
    return Path(f"/tmp/tare-{user}")


def _is_own_folder(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _untrusted_server(descriptor: int) -> int | None:
    server = server_of(descriptor)
    return None if server is None or is_trusted(server) else server


def _mode(path: Path) -> int:
    return FOR_ALL if path == ROOTS else OWN


def _fault(descriptor: int, mode: int) -> str | None:
    # First, for a server of FUSE shows what owner it wants, or never answers.
    if (server := _untrusted_server(descriptor)) is not None:
        return (
            f"in a file system that was mounted by user {server}. Unmount it, or set"
            " XDG_RUNTIME_DIR to a directory that you own"
        )
    status, user = os.fstat(descriptor), os.geteuid()
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
