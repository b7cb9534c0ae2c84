# SPDX-License-Identifier: Apache-2.0
"""Many requests of a single span in memory, so that they are read once: decoding a Parquet file
takes longer than what is computed of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tare.samples.engines import exact
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import count_rows, rows_of
from tare.samples.sql.table import Table

if TYPE_CHECKING:
    from numpy import dtype

    from tare.samples.engines.cut_bitmask import WarmUpEnds

Integers = npt.NDArray[np.int64]

STEPS = tuple(10**power for power in range(1, 10))
FAILED, NO_LATENCY, NONE = -1, -2, -3
"""In place of a latency: of a failed request, of a successful request without a latency, and of a
request that makes it impossible to hold them. The first two are the greatest unsigned numbers."""
FRAGMENTS = 1_000
"""Requests per stretch, on average, below which the runs are too mixed to be held."""


@dataclass(frozen=True)
class Stretch:
    """Requests of one run that were read one after the other."""

    run: int
    start: int
    """Of the first of them in all, as `end` is of what follows them."""
    end: int
    places: int | Integers
    """Of the first of consecutive places, or of each request: an array (n,)."""

    def since(self, place: int) -> Any:
        """An index of the requests from a place on."""
        if isinstance(self.places, int):
            return slice(max(0, place - self.places), None)
        return self.places >= place


@dataclass
class OfRun:
    """What is counted of one run while it is read."""

    stretches: list[Stretch] = field(default_factory=list)
    places: int = 0
    requests: int = 0
    successful: int = 0
    answered: int = 0
    """Successful requests with a latency, of which the others are."""
    sum: int = 0
    least: int | None = None
    most: int | None = None
    step: int = STEPS[-1]
    """The largest power of ten of ns that divides all latencies."""

    def add(self, stretch: Stretch, values: Integers) -> None:
        """Counts coded latencies (n,)."""
        odd = values[np.flatnonzero(values < 0)]
        answered = values.size - odd.size
        last = stretch.places
        last = last + values.size - 1 if isinstance(last, int) else int(last.max())
        self.stretches.append(stretch)
        self.places = max(self.places, last + 1)
        self.requests += values.size
        self.successful += values.size - int((odd == FAILED).sum())
        if not answered:
            return
        # What has no latency is the greatest of all where there is no sign.
        least, most = int(values.view(np.uint64).min()), int(values.max())
        self.answered += answered
        self.sum += int(values.sum()) - int(odd.sum())
        self.least = least if self.least is None else min(least, self.least)
        self.most = most if self.most is None else max(most, self.most)
        if self.step > 1:
            known = values if not odd.size else values[values >= 0]
            while self.step > 1 and (known % self.step).any():
                self.step //= 10


@dataclass
class RequestsInMemory:
    """All requests of one span."""

    span: str
    values: Any
    """Latencies in ns: an array (n,) of 32 or 64 bits without a sign."""
    runs: dict[int, OfRun] = field(default_factory=dict)

    @property
    def no_latency(self) -> int:
        """The least of `values` that is no latency."""
        return int(np.iinfo(self.values.dtype).max) - 1

    def latencies(self, run: int) -> Iterator[Any]:
        """Those of successful requests of a run, in pieces (n,)."""
        for stretch in self.runs[run].stretches:
            values = self.values[stretch.start : stretch.end]
            yield values[values < self.no_latency]

    def keys(self, extent: exact.Extent, bits: int, begins: WarmUpEnds, kind: dtype[Any]) -> Any:
        """What `exact.hold` packs of the requests of some runs: an array (n,), in any order.

        The keys of all runs take the place of the latencies, which are gone then.
        """
        beyond = extent.most - extent.least + 1
        runs = [run for run in extent.runs if run in self.runs]
        no_latency = self.no_latency
        values = self.values
        keys = np.empty(extent.rows, kind)
        if len(runs) == len(self.runs) and values.dtype == kind:
            keys, self.values = values, np.empty(0, kind)
        end = 0
        for stretch in sorted((s for run in runs for s in self.runs[run].stretches), key=_start):
            known = values[stretch.start : stretch.end]
            odd = np.flatnonzero(known >= no_latency)
            successful = known[odd] == no_latency
            part = known.astype(kind)
            part -= extent.least
            part[odd] = beyond + successful
            part <<= bits + begins.bits
            part |= (stretch.run - extent.runs[0]) << begins.bits
            earliest, later = begins.of((stretch.run, self.span))
            for bit, place in enumerate(later):
                part[stretch.since(place)] |= 1 << bit
            part = part[stretch.since(earliest)]
            start, end = end, end + part.size
            keys[start:end] = part
        return keys[:end]


def load(samples: Any) -> RequestsInMemory | None:
    """Reads samples, as `describe_each` has them, if they are many.

    None if they are few, do not fit into memory or have several spans, runs that alternate from
    row to row, or latencies below 0; and on engines other than DuckDB.
    """
    if not isinstance(samples, Table):
        return None
    rows = count_rows(samples)
    if not exact.FEW < rows <= exact.HELD // np.dtype(np.uint32).itemsize:
        return None
    span = rows_of(samples.select("span").limit(1))[0]["span"]
    found = RequestsInMemory(span, np.empty(rows, np.uint32))
    end, stretches = 0, 0
    for batch in _coded(samples, span).stream(exact.ROWS):
        if any(column.null_count for column in batch.columns):
            return None
        values, runs, places = (column.to_numpy() for column in batch.columns)
        if values.min() <= NONE or places.min() < 0 or not _widened(found, values, rows):
            return None
        found.values[end : end + values.size] = values
        changes = np.flatnonzero(runs[1:] != runs[:-1]) + 1
        stretches += changes.size
        if stretches * FRAGMENTS > rows:
            return None
        for start, stop in pairwise([0, *changes.tolist(), values.size]):
            run = int(runs[start])
            stretch = Stretch(run, end + start, end + stop, _places(places[start:stop]))
            found.runs.setdefault(run, OfRun()).add(stretch, values[start:stop])
        end += values.size
    found.values = found.values[:end]
    return found if end else None


def _coded(samples: Table, span: str) -> Table:
    sql = functions_of(samples)
    mine, latency, ok = samples.span == span, samples.latency_ns, samples.ok
    value: Any = sql.cases(
        (mine & ok & (latency >= 0), latency.cast("int64")),
        (mine & ok.fill_null(False) & latency.isnull(), sql.literal(NO_LATENCY)),
        (mine & ~ok.fill_null(False), sql.literal(FAILED)),
        else_=sql.literal(NONE),
    )
    return samples.select(
        value=value.cast("int64"), run=samples.run.cast("int32"), place=samples.place.cast("int64")
    )


def _widened(found: RequestsInMemory, values: Integers, rows: int) -> bool:
    """Whether the array has numbers that are long enough for the next values, now."""
    if found.values.dtype == np.uint64 or int(values.max()) < found.no_latency:
        return True
    if rows * np.dtype(np.uint64).itemsize > exact.HELD:
        return False
    no_latency = found.no_latency
    wide = found.values.astype(np.uint64)
    # The codes become the greatest numbers of the new kind.
    wide[wide >= no_latency] |= np.uint64(0xFFFF_FFFF_0000_0000)
    found.values = wide
    return True


def _places(places: Integers) -> int | Integers:
    """The first if they are consecutive."""
    first, size = int(places[0]), places.size
    consecutive = int(places[-1]) - first == size - 1 and (places[1:] - places[:-1] == 1).all()
    if consecutive:
        return first
    return places.astype(np.uint32) if int(places.max()) < 2**32 else places.copy()


def _start(stretch: Stretch) -> int:
    return stretch.start
