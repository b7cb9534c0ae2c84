# SPDX-License-Identifier: Apache-2.0
"""What earlier comparisons said, one line of JSON each, and where the present comparison stands."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, BinaryIO

from tare.atomic_files import regular_file
from tare.errors import InputError
from tare.samples.formats.lines import lines
from tare.trust import trusted_folder
from tare.verdict.number_text import count, percent

if TYPE_CHECKING:
    from tare.stats.trend import Trend
    from tare.verdict import Comparison, Judgement

NAME = "history.jsonl"
FORMAT = 1
RECENT = 100
"""How many of the latest effects a trend is looked for in."""
_SHOWN = 5
_LARGEST = 1e6
_SIGNIFICANT = 0.05
_SERIES = ("environment", "baseline", "condition", "span", "metric")


@dataclass(frozen=True)
class HistoryEntry:
    """One comparison among the earlier comparisons of the same conditions, span and metric."""

    comparison: Comparison
    verdicts: Mapping[str, int]
    """How often each came before."""
    effects: tuple[float, ...]
    """The earlier effects that there are, as fractions, the oldest first."""

    @property
    def trend(self) -> Trend | None:
        """Of the latest effects, with the present effect; None where there are too few."""
        from tare.stats.trend import trend

        mine = self.comparison.relative
        return trend([*self.effects, *([] if mine is None else [mine])][-RECENT:])

    @property
    def below(self) -> int | None:
        """How many earlier effects are smaller than the present effect."""
        mine = self.comparison.relative
        return None if mine is None else sum(effect < mine for effect in self.effects)

    def line(self) -> str:
        """The entry in one sentence."""
        comparison = self.comparison
        name = f"history of {comparison.title}"
        if not self.verdicts:
            return f"{name}: this is the first"
        counted = ", ".join(f"{word} {number}" for word, number in self.verdicts.items())
        parts = [f"{name}: {count(sum(self.verdicts.values()), 'earlier result')} ({counted})"]
        if self.effects:
            span = f"{percent(min(self.effects))} to {percent(max(self.effects))}"
            parts.append(f"effects {span}, median {percent(median(self.effects))}")
            latest = ", ".join(percent(effect) for effect in self.effects[-_SHOWN:])
            parts.append(f"the last {latest}")
        if self.effects and comparison.relative is not None:
            parts.append(
                f"now {percent(comparison.relative)}, above {self.below} of {len(self.effects)}"
            )
        parts.append(_tendency(self.trend))
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Numbers for machines: fractions, and `slope` a result."""
        trend = self.trend
        return {
            **_series(self.comparison),
            "earlier": sum(self.verdicts.values()),
            "verdicts": dict(self.verdicts),
            "median": median(self.effects) if self.effects else None,
            "below": self.below,
            "trend": None if trend is None else {"slope": trend.slope, "p": trend.p},
        }


@dataclass(frozen=True)
class Standing:
    """Where each primary comparison stands, and how many lines were not understood."""

    file: Path
    entries: tuple[HistoryEntry, ...]
    unreadable: int

    def lines(self) -> list[str]:
        """For a person."""
        lines = [entry.line() for entry in self.entries]
        if self.unreadable:
            lines.append(f"{self.file}: {count(self.unreadable, 'line')} not understood")
        return lines

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "file": str(self.file),
            "unreadable": self.unreadable,
            "comparisons": [entry.to_json() for entry in self.entries],
        }


@dataclass
class _Earlier:
    verdicts: Counter[str] = field(default_factory=Counter)
    effects: list[float] = field(default_factory=list)


def check(folder: Path) -> None:
    """Makes the folder and its file. Raises InputError where nothing can be written there."""
    try:
        with _held(folder):
            pass
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: {error.strerror}; choose another folder with --history"
        ) from error


def remember(folder: Path, judgement: Judgement, labels: Mapping[str, str]) -> Standing:
    """Appends the primary comparisons to a history, and says where they stand in it.

    All lines of a judgement are written, or none; two that write at once wait for each other.
    An OSError names the file.
    """
    primary = [comparison for comparison in judgement.comparisons if comparison.role == "primary"]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    added = [
        json.dumps({"format": FORMAT, "time": now, "labels": dict(labels), **_record(comparison)})
        for comparison in primary
    ]
    path = folder / NAME
    try:
        with _held(folder) as file:
            earlier, unreadable, whole = _read(file)
            _append(file, "".join(f"{line}\n" for line in added).encode(), whole)
    except OSError as error:
        error.filename = str(path)
        raise
    entries = []
    for comparison in primary:
        its = earlier.get(tuple(_series(comparison).values()), _Earlier())
        entries.append(
            HistoryEntry(comparison, dict(its.verdicts.most_common()), tuple(its.effects))
        )
    return Standing(path, tuple(entries), unreadable)


@contextmanager
def _held(folder: Path) -> Iterator[BinaryIO]:
    """The history's file, locked; the kernel lets go of it when this process ends, however."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    try:
        with trusted_folder(folder, create=True) as directory:
            descriptor = regular_file(folder / NAME, flags, directory)
    except InputError as error:
        raise InputError(f"{error}; choose another folder with --history") from error
    with os.fdopen(descriptor, "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _append(file: BinaryIO, added: bytes, whole: bool) -> None:
    """Adds lines at the end, or leaves the file as it was; what was cut short stays by itself."""
    size = os.fstat(file.fileno()).st_size
    data = added if whole else b"\n" + added
    try:
        written = 0
        while written < len(data):
            written += os.write(file.fileno(), data[written:])
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), size)
        raise


def _read(file: BinaryIO) -> tuple[dict[tuple[Any, ...], _Earlier], int, bool]:
    """Earlier results by series, lines not understood, whether the file ends with a whole line."""
    file.seek(0)
    found: dict[tuple[Any, ...], _Earlier] = {}
    unreadable = 0
    for line in lines(file):
        try:
            if line is None:
                raise ValueError  # noqa: TRY301
            record = json.loads(line)
            if record["format"] != FORMAT:
                raise ValueError  # noqa: TRY301
            verdict, effect = str(record["verdict"]), record["effect"]["relative"]
            if not (effect is None or -1 <= effect <= _LARGEST):  # not a number, most of all
                raise ValueError  # noqa: TRY301
            its = found.setdefault(tuple(record[key] for key in _SERIES), _Earlier())
        except (ValueError, KeyError, TypeError, RecursionError):
            unreadable += line is None or bool(line.strip())
            continue
        its.verdicts[verdict] += 1
        if effect is not None:
            its.effects.append(float(effect))
    if size := file.seek(0, os.SEEK_END):
        file.seek(size - 1)
    return found, unreadable, size == 0 or file.read() == b"\n"


def _record(comparison: Comparison) -> dict[str, Any]:
    left_out = ("role", "p", "p_adjusted", "p_equivalent", "mde", "runs_needed", "runs_show")
    return {key: value for key, value in comparison.to_json().items() if key not in left_out}


def _series(comparison: Comparison) -> dict[str, Any]:
    known = comparison.to_json()
    return {key: known[key] for key in _SERIES}


def _tendency(trend: Trend | None) -> str:
    if trend is None:
        return "too few for a trend"
    if trend.p > _SIGNIFICANT or trend.slope == 0:
        return "no trend"
    word = "rising" if trend.slope > 0 else "falling"
    return f"{word} by about {percent(abs(trend.slope), signed=False)} a result"
