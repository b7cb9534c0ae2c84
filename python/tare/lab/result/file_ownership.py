# SPDX-License-Identifier: Apache-2.0
"""Who could change the files of a result while it is measured.

Services are started with files that the lab has put into the result folder. Another user who may
rename or write anything on the way there could have commands run with the rights of whoever
measures, or files written elsewhere. Looking for links would not help: they can come later.

The check goes from the root of the file system down. Once a folder has passed it, no other user can
replace what is in it, so it does not matter that the check and the use go by names.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from pathlib import Path

from tare.atomic_files import mount_of
from tare.errors import InputError
from tare.plan import Plan
from tare.trust import MOST_LINKS, ROOT, maps_all_users, overflow_user, server_of_mount

WORK = "work"


def require_trusted(users: Set[int], folder: Path) -> bool:
    """Whether the folder exists. If it does, only `users` can change or replace it from now on.

    `folder` is resolved. Raises InputError if others could change what is in the folder, or what
    is on the way to it, as far as that exists.
    """
    device = _check_way(users, folder, (*reversed(folder.parents), folder))
    if device is None:
        return False
    for path in _inside(folder):
        with suppress(FileNotFoundError, NotADirectoryError):
            status = path.lstat()
            _check(users, path, folder, status)
            if status.st_dev != device:
                _check_mount(users, path, folder, _look(path)[1])
    return True


def resolved(users: Set[int], folder: Path) -> Path:
    """The folder without symbolic links; it need not exist. Raises InputError for a link of which
    others than `users` could choose the target."""
    found, links = Path("/"), 0
    names = [*reversed((Path.cwd() / folder).parts[1:])]
    while names:
        name = names.pop()
        path = found.parent if name == ".." else found / name
        link = _link(path)
        if link is None:
            found = path
            continue
        target, user = link
        known = users if _is_shared(path.parent.stat()) else users | unmapped_users()
        if user not in known:
            raise InputError(
                f"{path}: is a symbolic link of user {user}; name a folder of your own with --out"
            )
        _check_way(users, path, reversed(path.parents))
        links += 1
        if links > MOST_LINKS:
            raise InputError(f"{path}: too many symbolic links; name another folder with --out")
        found = Path("/") if target.is_absolute() else found
        names += [name for name in reversed(target.parts) if name != "/"]
    return found


def _link(path: Path) -> tuple[Path, int] | None:
    """Where a symbolic link leads, and its owner; None if it is none."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(link)
            if stat.S_ISLNK(status.st_mode):
                return Path(os.readlink("", dir_fd=link)), status.st_uid
        finally:
            os.close(link)
    return None


def trusted(plan: Plan) -> set[int]:
    """`known_users`, and whose plan it is: that runs commands in any case."""
    users = known_users()
    if plan.has_file:
        users.add(plan.folder.stat().st_uid)
    return users - unmapped_users()


def known_users() -> set[int]:
    """Root, this user, and who called sudo."""
    users = {ROOT, os.geteuid()}
    caller = os.environ.get("SUDO_UID", "")
    if os.geteuid() == ROOT and caller.isdecimal():
        users.add(int(caller))
    return users - unmapped_users()


def unmapped_users() -> set[int]:
    """The ID of all users without an ID in this user namespace, if there are such users.

    The machine's root is one of them, so folders above a result may have this ID, but in no folder
    such as /tmp, where any user can make them.
    """
    return set() if maps_all_users() else {overflow_user()}


def _check_way(users: Set[int], folder: Path, way: Iterable[Path]) -> int | None:
    """Raises InputError if others than `users` could change what is on the way to a folder; the
    device of the last, None if there is nothing."""
    device, above = None, None
    known = users | unmapped_users()
    for path in way:
        try:
            status, mount = _look(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        _check(known if path in folder.parents else users, path, folder, status)
        if above is not None and mount != above:
            _check_mount(users, path, folder, mount)
        device, above = status.st_dev, mount
        known = users if _is_shared(status) else users | unmapped_users()
    return device


def _look(path: Path) -> tuple[os.stat_result, str]:
    """What is at a path, and the ID of its mount."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor), mount_of(descriptor)
    finally:
        os.close(descriptor)


def _check(users: Set[int], path: Path, folder: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise InputError(f"{path}: is a symbolic link; put the file or folder itself there")
    # In a folder such as /tmp, others can add files, but not replace what leads to the folder.
    is_shared = _is_shared(status) and path in folder.parents
    if status.st_uid not in users:
        change = f"belongs to user {status.st_uid}, which could change what tare runs and writes"
        raise _refused(path, folder, change)
    if status.st_mode & stat.S_IWOTH and not is_shared:
        raise _refused(path, folder, "can be written by every user")


def _check_mount(users: Set[int], path: Path, folder: Path, mount: str) -> None:
    """A file system of FUSE shows what owners its server wants."""
    try:
        user = server_of_mount(mount)
    except OSError as error:
        raise _refused(path, folder, str(error.strerror)) from error
    if user is not None and user not in users:
        change = f"was mounted by user {user}, which could change what tare runs and writes"
        raise _refused(path, folder, change)


def _is_shared(status: os.stat_result) -> bool:
    """Whether it is a folder such as /tmp."""
    return bool(status.st_mode & stat.S_ISVTX)


def _refused(path: Path, folder: Path, change: str) -> InputError:
    inside = path == folder or folder in path.parents
    remedy = "copy the result (cp -r)" if inside else "name a folder of your own with --out"
    return InputError(f"{path}: {change}; {remedy}")


def _inside(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
        if Path(parent) == folder and WORK in folders:
            # What services of other users left there is removed, and never followed.
            folders.remove(WORK)
