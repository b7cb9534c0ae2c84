# SPDX-License-Identifier: Apache-2.0
"""How often each latency occurs in each run, in ascending order, from any engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tare.errors import InputError
from tare.samples.engines.cut_bitmask import WarmUpEnds
from tare.samples.sql.table import Table
from tare.stats.kernel import sort

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.engines.in_memory import RequestsInMemory

Integers = npt.NDArray[np.int64]
Counts = tuple[Integers, npt.NDArray[np.uint16], Integers]
"""Latencies in ns, the indexes of runs, how often: arrays of shape (n,). A latency of a run may
be there several times."""

ROWS = 200_000
"""Rows that are taken from the engine at once."""
FEW = 1_000_000
"""Requests whose keys are taken at once, without Arrow, whose import takes a tenth of a second."""

HELD = 2**29
"""Bytes of keys up to which they are sorted here: in a third of the engine's time."""

_Keys = tuple[Integers, Integers]
"""Keys and how often each is there: arrays of shape (n,)."""


@dataclass(frozen=True)
class Extent:
    """What is known of samples of one span before they are described."""

    span: str
    runs: Sequence[int]
    """Ascending."""
    rows: int
    least: int
    """Of the latencies in ns of successful requests, as `most`."""
    most: int


@dataclass(frozen=True)
class Held:
    """All requests of one span, sorted by latency, in memory."""

    keys: Any
    """Latency less the least latency, run less the first, and `reached`, packed: an array (n,)."""
    unanswered: Any
    """The same of requests without a latency: in its place is 0 if they failed, or 1."""
    extent: Extent
    bits: int
    """Of a run."""
    begins: WarmUpEnds

    def totals(self) -> list[dict[str, Any]]:
        """Of each run and `reached` the numbers of requests; `least` and `most` are of the span."""
        kinds = 1 << self.bits << self.begins.bits
        answered, sums = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
        for keys in _parts(self.keys):
            kind = (keys & (kinds - 1)).astype(np.int64)
            # Floats add whole numbers exactly: `hold` has none whose sum is not below 2^53.
            sums += np.bincount(kind, keys // kinds, kinds).astype(np.int64)
            answered += np.bincount(kind, minlength=kinds)
        lost = np.bincount(self.unanswered, minlength=2 * kinds).reshape(2, kinds)
        extent = self.extent
        rows = []
        for kind in np.flatnonzero(answered + lost.sum(axis=0)).tolist():
            found = int(answered[kind])
            row = {
                "run": extent.runs[0] + (kind >> self.begins.bits),
                "span": extent.span,
                "reached": kind & ((1 << self.begins.bits) - 1),
                "requests": found + int(lost[:, kind].sum()),
                "errors": int(lost[0, kind]),
                "answered": found,
                "sum": int(sums[kind]) + found * extent.least,
                "least": extent.least + int(self.keys[0] // kinds) if found else None,
                "most": extent.least + int(self.keys[-1] // kinds) if found else None,
            }
            rows.append(row)
        return rows

    def counts(self, runs: Sequence[int]) -> Iterator[list[Counts]]:
        """As `counts_in_order` has them."""
        pieces = (_counted(part) for part in _parts(self.keys))
        return _unpacked(
            pieces, self.extent.least, self.extent.runs[0], runs, self.bits, self.begins
        )


def hold(
    marked: Table, extent: Extent, begins: WarmUpEnds, loaded: RequestsInMemory | None = None
) -> Held | None:
    """The requests of a span if they are many, and fit into memory.

    `loaded` has them already, and gives them away if all of its runs are wanted.
    """
    bits = (extent.runs[-1] - extent.runs[0]).bit_length()
    shift, beyond = bits + begins.bits, extent.most - extent.least + 1
    width = (((beyond + 2) << shift) - 1).bit_length()
    kind = "uint32" if width <= 32 else "uint64"
    too_much = extent.rows * np.dtype(kind).itemsize > HELD or beyond * ROWS > 2**53
    if extent.rows <= FEW or too_much or shift > 16 or not isinstance(marked, Table):
        return None
    if loaded is None:
        keys = _held(_packed(marked, extent, bits, begins).cast({"key": kind}), extent.rows, kind)
    else:
        keys = loaded.keys(extent, bits, begins, np.dtype(kind))
    sort(keys)
    end = int(np.searchsorted(keys, np.array(beyond << shift, kind)))
    unanswered = keys[end:].astype(np.int64) - (beyond << shift)
    return Held(keys[:end], unanswered, extent, bits, begins)


def _packed(marked: Table, extent: Extent, bits: int, begins: WarmUpEnds) -> Table:
    ok: Any = marked.ok
    latency: Any = marked.latency_ns.cast("int64")
    beyond = extent.most - extent.least + 1
    answered = ok & latency.notnull()
    value = answered.ifelse(latency - extent.least, ok.ifelse(beyond + 1, beyond))
    run = marked.run.cast("int64") - extent.runs[0]
    packed = (value * (1 << bits) + run) * (1 << begins.bits) + marked.reached
    return marked.select(key=packed)


def counts_in_order(  # noqa: PLR0917 - called once
    marked: Table,
    spans: Collection[str],
    runs: Sequence[int],
    latencies: tuple[int, int],
    begins: WarmUpEnds,
    requests: int,
) -> Iterator[tuple[str, Iterator[list[Counts]]]]:
    """Of each span the latencies of its successful requests, each value whole in one piece.

    A piece has those of each of `begins`. `marked` has `run` (of `runs`, ascending), `span` (of
    `spans`), `latency_ns` between the two `latencies`, and `reached`: `requests` rows. A span is to
    be taken whole before the next. Raises InputError where latencies are so far apart that a run's
    number does not fit beside them.
    """
    least, most = latencies
    bits = (runs[-1] - runs[0]).bit_length()
    widest = ((most - least + 1) << bits << begins.bits) - 1
    if widest.bit_length() > 63:
        raise InputError(
            f"latencies from {least} to {most} ns: no request takes that long; check their unit"
        )
    # One number sorts faster than three, and without a name beside it.
    latency: Any = marked.latency_ns
    value = (latency.cast("int64") - least) * (1 << bits) + (marked.run.cast("int64") - runs[0])
    keys = marked.select("span", key=value * (1 << begins.bits) + marked.reached)
    (alone,) = spans if len(spans) == 1 else (None,)
    if alone is not None:
        keys = keys.drop("span")
    if isinstance(keys, Table):
        # Short numbers sort faster than long numbers. Spark does not know them.
        kind = "uint32" if widest.bit_length() <= 32 else "uint64"
        pieces = _sorted(keys.cast({"key": kind}), alone, requests, kind)
    else:
        pieces = _grouped(keys, alone)

    for span, its in groupby(pieces, key=itemgetter(0)):
        keys_of_span = ((found, counts) for _, found, counts in its)
        yield span, _unpacked(keys_of_span, least, runs[0], runs, bits, begins)


def _unpacked(  # noqa: PLR0917 - what keys are packed of
    pieces: Iterator[_Keys],
    least: int,
    first: int,
    runs: Sequence[int],
    bits: int,
    begins: WarmUpEnds,
) -> Iterator[list[Counts]]:
    """Of packed keys the latencies, and the index of their runs among `runs`."""
    numbers = np.array(runs) - first
    gaps = numbers[-1] >= numbers.size
    for found, counts in _whole_values(pieces, bits + begins.bits):
        values = (found >> begins.bits >> bits) + least
        index = (found >> begins.bits) & ((1 << bits) - 1)
        if gaps:
            index = np.searchsorted(numbers, index)
        # NumPy has its quickest sort for 16 bits.
        whole = values, index.astype(np.uint16), counts
        yield [_of(which, begins, found, whole) for which in range(begins.count)]


def _of(which: int, begins: WarmUpEnds, keys: Integers, counts: Counts) -> Counts:
    """The counts that one of `begins` has."""
    if begins.has_all(which):
        return counts
    # Places take a tenth of a mask's time where the chosen are anywhere.
    chosen = np.flatnonzero(begins.has(which, keys & ((1 << begins.bits) - 1)))
    latencies, index, requests = counts
    return latencies.take(chosen), index.take(chosen), requests.take(chosen)


def _sorted(
    keys: Table, alone: str | None, rows: int, kind: str
) -> Iterator[tuple[str, Integers, Integers]]:
    """Equal keys are counted as they come."""
    for span, found in _sorted_keys(keys, alone, rows, kind):
        yield span, *_counted(found)


def _counted(found: Any) -> _Keys:
    """Each of the sorted keys once, and how often it is there."""
    first = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
    return found[first].astype(np.int64), np.diff(np.append(first, found.size))


def _parts(keys: Any) -> Iterator[Any]:
    return (keys[start : start + ROWS] for start in range(0, keys.size, ROWS))


def _sorted_keys(keys: Table, alone: str | None, rows: int, kind: str) -> Iterator[tuple[str, Any]]:
    """Keys of a span that fit into memory are sorted here, others by the engine, on its disk."""
    if alone is not None and rows > FEW and rows * np.dtype(kind).itemsize <= HELD:
        held = _held(keys, rows, kind)
        sort(held)
        yield from ((alone, part) for part in _parts(held))
        return
    keys = keys.order_by(*keys.columns)
    if rows <= FEW:
        columns = keys.arrays()
        found = columns["key"]
        if alone is not None:
            yield from [(alone, found)] if found.size else []
            return
        spans = columns["span"]
        ends = [*(np.flatnonzero(spans[1:] != spans[:-1]) + 1), found.size]
        for start, end in pairwise([0, *ends]):
            if end > start:
                yield spans[start], found[start:end]
        return
    for batch in keys.stream(ROWS):
        for span, part in _by_span(batch, alone):
            yield span, part.column("key").to_numpy()


def _held(keys: Table, rows: int, kind: str) -> Any:
    """All keys, in any order: an array (rows,)."""
    held = np.empty(rows, kind)
    end = 0
    for batch in keys.stream(ROWS):
        start, end = end, end + batch.num_rows
        held[start:end] = batch.column("key").to_numpy()
    return held[:end]


def _grouped(keys: Table, alone: str | None) -> Iterator[tuple[str, Integers, Integers]]:
    """The engine counts; of times in nanoseconds there are nearly as many counts as requests."""
    table = keys.group_by(keys.columns).aggregate(requests=keys.count()).to_pyarrow()
    table = table.sort_by([(name, "ascending") for name in keys.columns])
    for batch in table.to_batches(max_chunksize=ROWS):
        for span, rows in _by_span(batch, alone):
            found, counts = (rows.column(name).to_numpy() for name in ("key", "requests"))
            yield span, found.astype(np.int64), counts.astype(np.int64)


def _by_span(batch: pa.RecordBatch, alone: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each span, which stand together; or of the span that is `alone`."""
    import pyarrow.compute as pc

    if alone is not None:
        yield alone, batch
        return
    stretches = pc.run_end_encode(batch.column("span"))
    start = 0
    for span, end in zip(stretches.values.to_pylist(), stretches.run_ends.to_pylist(), strict=True):
        yield span, batch.slice(start, end - start)
        start = end


def _whole_values(pieces: Iterator[_Keys], bits: int) -> Iterator[_Keys]:
    """The same, without a latency whose keys are in two pieces."""
    keys = counts = np.zeros(0, dtype=np.int64)
    for more, more_counts in pieces:
        if keys.size and keys[-1] == more[0]:
            more_counts[0] += counts[-1]
            keys, counts = keys[:-1], counts[:-1]
        keys, counts = np.append(keys, more), np.append(counts, more_counts)
        whole = int(np.searchsorted(keys, (keys[-1] >> bits) << bits))
        if whole:
            yield keys[:whole], counts[:whole]
        keys, counts = keys[whole:], counts[whole:]
    if keys.size:
        yield keys, counts
