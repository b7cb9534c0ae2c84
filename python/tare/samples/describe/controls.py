# SPDX-License-Identifier: Apache-2.0
"""The history of controls: how often a baseline differed from itself on this machine."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from tare.atomic_files import regular_file
from tare.errors import InputError
from tare.state import state_folder

NAME = "controls.jsonl"
FORMAT = 1
_Key = tuple[str, str]


class Outcome(Protocol):
    """What the control of one environment of an experiment came to."""

    @property
    def environment(self) -> str: ...

    @property
    def p_adjusted(self) -> float: ...

    @property
    def alarm(self) -> bool: ...


def remember(experiment: str, outcomes: Iterable[Outcome]) -> str | None:
    """Appends the outcomes of a finished experiment, named by its id, unless they are known.

    Two that write at once wait for each other. Returns a warning where nothing can be written:
    a history is worth no experiment.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = regular_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known, whole = _read(file)
            lines = [
                {"format": FORMAT, "experiment": experiment, "time": now}
                | {
                    "environment": outcome.environment,
                    "p": outcome.p_adjusted,
                    "alarm": outcome.alarm,
                }
                for outcome in outcomes
                if (experiment, outcome.environment) not in known
            ]
            if lines:
                # What a full disk cut short stays by itself.
                text = "".join(
                    ("" if whole else "\n", *(f"{json.dumps(line)}\n" for line in lines))
                )
                left = text.encode()
                while left:  # one write, but on a disk that is about to be full
                    left = left[os.write(file.fileno(), left) :]
    except InputError as error:
        return f"the control was not stored: {error}"
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        name = getattr(error, "filename", None) or NAME
        return f"the control was not stored: {name}: {why}"
    return None


def standing() -> tuple[int, int]:
    """How many controls raised an alarm, and of how many: one an experiment and environment."""
    try:
        with os.fdopen(regular_file(_path(), os.O_RDONLY), "rb") as file:
            alarms, _ = _read(file)
    except (OSError, RuntimeError, InputError):
        return 0, 0
    return sum(alarms.values()), len(alarms)


def _path() -> Path:
    return state_folder() / NAME


def _read(file: BinaryIO) -> tuple[dict[_Key, bool], bool]:
    """Whether each known control raised an alarm; whether the file ends with a whole line."""
    file.seek(0)
    alarms: dict[_Key, bool] = {}
    line = b"\n"
    for line in file:
        try:
            record = json.loads(line)
            if record["format"] == FORMAT and isinstance(record["alarm"], bool):
                key = str(record["experiment"]), str(record["environment"])
                alarms.setdefault(key, record["alarm"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # cut short, or of no program that is known here
    return alarms, line.endswith(b"\n")
