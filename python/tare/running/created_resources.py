# SPDX-License-Identifier: Apache-2.0
"""What environments of `tare run` made that outlives processes: containers and bridges.

Each has a record in the runtime directory, written before it is made: the process that owns it, and
the commands that remove it.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tare.running.directory import make_runtime_directory, runtime_directory
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
    """Records what this process is about to make."""
    make_runtime_directory()
    folder = _folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name}.json"
    made = Made(kind, name, os.getpid(), start_ticks(os.getpid()), undo)
    path.write_text(json.dumps(asdict(made)), encoding="utf-8")
    return Record(path, undo)


def made_things() -> list[Made]:
    """What environments of this user have made, by name."""
    return [made for _, made in _records()]


def remove_abandoned() -> Iterator[Path]:
    """Removes what killed processes left behind, and returns the records."""
    for path, made in _records():
        if made.in_use:
            continue
        with suppress(OSError, subprocess.SubprocessError):
            for words in made.undo:
                subprocess.run(words, capture_output=True, timeout=LIMIT_S, check=True)
            path.unlink()
            yield path


def _folder() -> Path:
    return runtime_directory() / "environments"


def _records() -> Iterator[tuple[Path, Made]]:
    folder = _folder()
    with suppress(OSError):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return
        if status.st_mode & 0o022:
            return  # its commands could be those of another user
        for path in sorted(folder.glob("*.json")):
            with suppress(OSError, ValueError, TypeError):
                yield path, Made(**json.loads(path.read_bytes()))
