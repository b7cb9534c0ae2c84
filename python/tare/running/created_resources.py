# SPDX-License-Identifier: Apache-2.0
"""What `tare run` made that can outlive it: containers, bridges, programs of pipelines.

Each has a record in the runtime directory, written before it is made: the process that owns it, and
the commands that remove it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from tare.atomic_files import regular_file, replace
from tare.errors import InputError
from tare.running.directory import (
    OWN,
    make_runtime_directory,
    opened_own,
    opened_runtime_directory,
    runtime_directory,
)
from tare.running.programs import start_ticks

LIMIT_S = 60
_MOST_BYTES = 1 << 20
_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""PROC_PID_INIT_INO of Linux: from there all processes of the machine can be seen."""


@dataclass(frozen=True)
class Made:
    """One container, bridge or program."""

    # A newer Tare may mean more than is understood here.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    type: str
    name: str
    owner: int
    """PID of the `tare run` that made it."""
    owner_start: int
    """When this process started, in clock ticks after boot."""
    undo: Sequence[Sequence[str]]
    """The commands that remove it. They succeed, too, if it was not made or is removed already."""
    namespace: int = 0
    """The PID namespace of its owner, by its inode: containers may share the runtime directory. It
    is 0 in records of an older Tare."""

    @property
    def in_use(self) -> bool:
        """Whether its owner lives, or may live where this process cannot see it."""
        with suppress(OSError, ValueError, IndexError):
            own = _pid_namespace("self")
            if self.namespace in (0, own):
                return start_ticks(self.owner) == self.owner_start
            return own != _FIRST_PID_NAMESPACE or self.namespace in _pid_namespaces()
        return False


@dataclass(frozen=True)
class Record:
    """The record of one thing; delete the file after its removal."""

    path: Path
    undo: Sequence[Sequence[str]]

    @property
    def removal(self) -> list[str]:
        """One command that removes the thing and its record."""
        words = [*self.undo, ("rm", "-f", str(self.path))]
        return ["sh", "-c", " && ".join(map(shlex.join, words))]


def record(kind: str, name: str, undo: Sequence[Sequence[str]]) -> Record:
    """Records what this process is about to make.

    Raises InputError if another user can write to the directory of records.
    """
    make_runtime_directory()
    namespace = _pid_namespace("self")
    made = Made(kind, name, os.getpid(), start_ticks(os.getpid()), undo, namespace)
    with _opened_folder(create=True) as folder:
        path = _folder() / f"{name}.json"
        replace(path, json.dumps(asdict(made)), folder)
        return Record(path, undo)


def made_things() -> list[Made]:
    """What environments of this user have made, by name."""
    with suppress(OSError, InputError), _opened_folder() as folder:
        return [made for _, made in _records(folder)]
    return []


def remove_abandoned() -> Iterator[Path]:
    """Removes what killed processes left behind, and returns the records."""
    with suppress(OSError, InputError), _opened_folder() as folder:
        for path, made in _records(folder):
            if made.in_use:
                continue
            with suppress(OSError, ValueError, subprocess.SubprocessError):
                for words in made.undo:
                    subprocess.run(words, capture_output=True, timeout=LIMIT_S, check=True)
                os.unlink(path.name, dir_fd=folder)
                yield path


def _folder() -> Path:
    return runtime_directory() / "environments"


@contextmanager
def _opened_folder(create: bool = False) -> Iterator[int]:
    """The descriptor of the directory of records, which has commands that this user runs.

    Raises InputError if another user can write to it.
    """
    path = _folder()
    with opened_runtime_directory() as parent:
        if create:
            with suppress(FileExistsError):
                os.mkdir(path.name, OWN, dir_fd=parent)
        with opened_own(path, OWN, parent) as folder:
            yield folder


def _pid_namespace(process: str) -> int:
    return Path(f"/proc/{process}/ns/pid").stat().st_ino


def _pid_namespaces() -> set[int]:
    """Of all processes that this user may look into."""
    found = set()
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdecimal():
                found.add(_pid_namespace(process.name))
    return found


def _records(folder: int) -> Iterator[tuple[Path, Made]]:
    """Those that are understood: a full disk, or another program, may have damaged others."""
    from pydantic import TypeAdapter

    known = TypeAdapter(Made)
    names = (name for name in os.listdir(folder) if name.endswith(".json"))
    for path in sorted(_folder() / name for name in names):
        with suppress(OSError, InputError, ValueError):
            with os.fdopen(regular_file(path, os.O_RDONLY, folder), "rb") as file:
                made = known.validate_json(file.read(_MOST_BYTES), strict=True)
            if all(made.undo):
                yield path, made
