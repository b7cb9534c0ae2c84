# SPDX-License-Identifier: Apache-2.0
"""Who could change the files of a result while it is measured.

Services are started with files that the lab has put into the result folder. Another user who may
rename or write anything on the way there could have commands run with the rights of whoever
measures, or files written elsewhere. Looking for links would not help: they can come later.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tare.errors import InputError
from tare.plan import Plan

ROOT = 0
UID_MAP = Path("/proc/self/uid_map")
OVERFLOW = Path("/proc/sys/kernel/overflowuid")
WORK = "work"
MOST_LINKS = 40
"""As many as the kernel follows."""


def require_trusted(plan: Plan, folder: Path) -> None:
    """Raises InputError if others than `trusted` could change what is in the folder, or what is
    on the way to it, as far as that exists. `folder` is resolved."""
    users = trusted(plan)
    for path in _on_the_way(folder):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise InputError(f"{path}: is a symbolic link; put the file or folder itself there")
        if status.st_uid not in users:
            change = (
                f"belongs to user {status.st_uid}, which could change what tare runs and writes"
            )
        elif status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            change = "can be written by every user"
        else:
            continue
        inside = path == folder or folder in path.parents
        remedy = "copy the result (cp -r)" if inside else "name a folder of your own with --out"
        raise InputError(f"{path}: {change}; {remedy}")


def resolved(plan: Plan, folder: Path) -> Path:
    """The folder without symbolic links; it need not exist. Raises InputError for a link of another
    user than `trusted`: it could lead anywhere."""
    users, found, links = trusted(plan), Path("/"), 0
    names = [*reversed((Path.cwd() / folder).parts[1:])]
    while names:
        name = names.pop()
        path = found.parent if name == ".." else found / name
        link = _link(path)
        if link is None:
            found = path
            continue
        target, user = link
        if user not in users:
            raise InputError(
                f"{path}: is a symbolic link of user {user}; name a folder of your own with --out"
            )
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
    return users


def known_users() -> set[int]:
    """Root, this user, and who called sudo."""
    users = {ROOT, os.geteuid()}
    caller = os.environ.get("SUDO_UID", "")
    if os.geteuid() == ROOT and caller.isdecimal():
        users.add(int(caller))
    if UID_MAP.read_text(encoding="utf-8").split()[1:] != ["0", str(2**32 - 1)]:
        # In a user namespace the machine's root is one of those without an ID.
        users.add(int(OVERFLOW.read_text(encoding="utf-8")))
    return users


def _on_the_way(folder: Path) -> Iterator[Path]:
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            return
        yield path
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
        if Path(parent) == folder and WORK in folders:
            # What services of other users left there is removed, and never followed.
            folders.remove(WORK)
