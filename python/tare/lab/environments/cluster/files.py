# SPDX-License-Identifier: Apache-2.0
"""Carries files to pods and back, at the same paths, with the `tar` of their image."""

import os
import re
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from tare.atomic_files import new_file
from tare.lab.environments.cluster.kubectl import complaint
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import variables_of

MOST_BYTES = 1 << 30
"""Of all files that one program gets."""
LIMIT_S = 600
# A file that its program still writes to, for which tar ends with 1, is no error.
_PACK = """\
cd / || exit
for path; do [ ! -e "$path" ] || set -- "$@" "$path"; shift; done
[ $# = 0 ] || tar -cf - "$@"
[ $? -le 1 ]
"""
State = tuple[int, int, int]
"""Mode, size and time of the last change of a file."""


class Carried:
    """The files that a pod has, as they were when they were carried there."""

    def __init__(self, mounted: Iterable[Path]) -> None:
        """`mounted` are folders that exist there, and that only root may change."""
        self._mounted = {*mounted}
        self._states: dict[Path, State] = {}

    def carry(self, words: Sequence[str], paths: Iterable[Path]) -> None:
        """Carries files and folders to a container, as far as they are new or have changed.

        `words` run a command in it with the standard input of this host. Raises RunError with its
        complaint.
        """
        changed = {}
        every = dict.fromkeys(each for path in paths for each in below(path))
        for path in every.keys() - self._mounted:
            status = path.lstat()
            # Of a folder, that its entries changed is their matter.
            is_folder = stat.S_ISDIR(status.st_mode)
            contents = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
            state = (status.st_mode, *contents)
            if self._states.get(path) != state:
                changed[path] = state
        size = sum(state[1] for state in changed.values())
        if size > MOST_BYTES:
            largest = max(changed, key=lambda path: changed[path][1])
            raise RunError(
                f"the pod would get {size >> 20:,} MiB of files, at most {MOST_BYTES >> 20:,} are"
                f" possible; the largest is {largest}"
            )
        if changed:
            _unpack(words, sorted(changed))
            self._states |= changed


def below(path: Path) -> Iterator[Path]:
    """A file or folder and all that it has, folders first; nothing if it does not exist."""
    if not path.is_symlink() and path.is_dir():
        yield path
        for entry in sorted(path.iterdir()):
            yield from below(entry)
    elif path.is_symlink() or path.is_file():
        yield path


def named(texts: Iterable[str], folders: Iterable[Path]) -> list[Path]:
    """The existing files and folders that words or variables name in or below some folders."""
    parts = {part for text in texts for part in re.split(r"[\s:;,='\"]+", text)}
    absolute = {Path(os.path.normpath(part)) for part in parts if part.startswith("/")}
    known = [*folders]
    return sorted(
        path
        for path in absolute
        if any(path.is_relative_to(folder) for folder in known) and path.exists()
    )


def bring(words: Sequence[str], paths: Sequence[Path]) -> None:
    """Brings files and folders of a container to this host; those that do not exist are left out.

    Raises RunError with the complaint of a command.
    """
    inside = [f".{path}" for path in paths]
    with tempfile.TemporaryFile() as archive:
        _run([*words, "sh", "-c", _PACK, "sh", *inside], stdout=archive)
        if archive.seek(0, os.SEEK_END):
            archive.seek(0)
            _extract(archive, paths)


def _extract(file: IO[bytes], paths: Sequence[Path]) -> None:
    """Writes files and folders only, below the paths that were asked for: a program of the pod
    decides what an archive has."""
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                path = Path(os.path.normpath(f"/{member.name}"))
                if not any(path.is_relative_to(wanted) for wanted in paths):
                    raise RunError(f"the pod sent a file that is not below its folder: {path}")
                if member.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif member.isfile() or member.islnk():
                    source = archive.extractfile(member)
                    assert source is not None
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with new_file(path) as target:
                        while data := source.read(1 << 20):
                            target.write(data)
    except (tarfile.TarError, KeyError) as error:
        raise RunError(f"the files of the pod cannot be read: {error}") from error
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror}") from error


def _unpack(words: Sequence[str], paths: Sequence[Path]) -> None:
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w:", format=tarfile.GNU_FORMAT) as archive:
            for path in paths:
                archive.add(path, recursive=False, filter=_without_owner)
        file.seek(0)
        _run([*words, "tar", "-xmf", "-", "-C", "/"], stdin=file)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The owner is the user of the container."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _run(
    words: Sequence[str], stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None
) -> None:
    try:
        done = subprocess.run(
            words,
            env=variables_of({}),
            stdin=stdin or subprocess.DEVNULL,
            stdout=stdout or subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"files of a pod were not carried within {LIMIT_S:g} s") from error
    except OSError as error:
        raise RunError(f"{words[0]}: {error.strerror}") from error
    if done.returncode:
        said = complaint(done.stderr.decode(errors="replace"))
        raise RunError(f"tar in the pod: {said or f'exit code {done.returncode}'}")
