# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics of several subjects once per second while services have load."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tare.lab.machine.snapshot import UNITS, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

PERIOD_NS = 10**9
Source = Callable[[Snapshot], None]
"""Adds what it reads to a snapshot."""


@dataclass
class _Subject:
    """One source and its readings: values by metric, each with the number of its moment."""

    source: Source
    last: Snapshot = field(default_factory=Snapshot)
    values: dict[str, tuple[array[int], array[float]]] = field(default_factory=dict)

    def read(self) -> Snapshot:
        snapshot = Snapshot()
        with suppress(Exception):  # No odd file ends an experiment; what was read before it counts.
            self.source(snapshot)
        return snapshot

    def add(self, moment: int) -> None:
        snapshot = self.read()
        for metric, value in snapshot.since(self.last).items():
            moments, values = self.values.setdefault(metric, (array("L"), array("d")))
            moments.append(moment)
            values.append(value)
        self.last = snapshot


class Sampler:
    """Reads all sources when it is created, in `look` once per second, and in `sample`.

    It has no thread: who waits calls `look`. Its times never step: they go on from the time of
    day at which it was created, as those of the load generator do.
    """

    def __init__(
        self, sources: Mapping[str, Source], now: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._now = now
        self._epoch_ns = time.time_ns() - now()
        self._subjects = {name: _Subject(source) for name, source in sources.items()}
        self._starts, self._lengths = array("q"), array("q")
        for subject in self._subjects.values():
            subject.last = subject.read()
        self._since = now()
        self._due = self._since + PERIOD_NS

    def look(self) -> None:
        """Takes a sample if a second has passed since the last sample that was due."""
        if self._now() >= self._due:
            self.sample()

    def sample(self) -> None:
        """Records what changed since the last sample."""
        now = self._now()
        if now <= self._since:
            return
        moment = len(self._starts)
        self._starts.append(self._epoch_ns + self._since)
        self._lengths.append(now - self._since)
        for subject in self._subjects.values():
            subject.add(moment)
        self._since = now
        while self._due <= now:  # after a pause, it does not make up for what it missed
            self._due += PERIOD_NS

    def table(self, subjects: Mapping[str, str]) -> pa.Table:
        """Rows of the table `machine`: of some sources, under the names of their subjects."""
        import numpy as np
        import pyarrow as pa

        from tare.tables import arrow_schema

        starts, lengths = (
            np.asarray(column, dtype=np.int64) for column in (self._starts, self._lengths)
        )
        declared = arrow_schema("machine")
        names = ("slice", "start_ns", "duration_ns", "subject", "metric", "value", "unit")
        schema = pa.schema([declared.field(name) for name in names])
        parts = [schema.empty_table()]
        for source, subject in subjects.items():
            for metric, (moments, values) in self._subjects[source].values.items():
                at = np.asarray(moments, dtype=np.int64)
                columns: Sequence[Any] = (
                    pa.nulls(at.size, pa.int32()),
                    starts[at],
                    lengths[at],
                    _repeated(subject, at.size),
                    _repeated(metric, at.size),
                    np.asarray(values, dtype=np.float64),
                    _repeated(UNITS.get(metric, "ns"), at.size),
                )
                parts.append(pa.table(list(columns), schema=schema))
        return pa.concat_tables(parts).unify_dictionaries()


def _repeated(text: str | None, count: int) -> Any:
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    if text is None:
        return pa.nulls(count, kind)
    return pa.repeat(pa.scalar(text), count).dictionary_encode().cast(kind)
