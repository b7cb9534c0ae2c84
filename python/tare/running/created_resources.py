# SPDX-License-Identifier: Apache-2.0
"""What environments of `tare run` made that outlives processes: containers and bridges.

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

from tare.errors import InputError
from tare.files import regular_file, replace
from tare.running.directory import (
    OWN,
    make_runtime_directory,
    opened_own,
    opened_runtime_directory,
    runtime_directory,
)
from tare.running.programs import start_ticks

LIMIT_S = 60


@dataclass(frozen=True)
class Made:
    """One container or bridge."""

    type: str
    name: str
    owner: int
    """PID of the `tare run` that made it."""
    owner_start: int
    """When this process started, in clock ticks after boot."""
    undo: Sequence[Sequence[str]]
    """The commands that remove it. They succeed, too, if it was not made or is removed already."""

    @property
    def in_use(self) -> bool:
        """Whether its owner lives."""
        with suppress(OSError, ValueError, IndexError):
            return start_ticks(self.owner) == self.owner_start
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
    made = Made(kind, name, os.getpid(), start_ticks(os.getpid()), undo)
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
            with suppress(OSError, subprocess.SubprocessError):
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


def _records(folder: int) -> Iterator[tuple[Path, Made]]:
    names = (name for name in os.listdir(folder) if name.endswith(".json"))
    for path in sorted(_folder() / name for name in names):
        with suppress(OSError, InputError, ValueError, TypeError):
            with os.fdopen(regular_file(path, os.O_RDONLY, folder), "rb") as file:
                made = Made(**json.loads(file.read()))
            yield path, made
