# SPDX-License-Identifier: Apache-2.0
"""How often each latency occurs in each run, in ascending order, from any engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tare.errors import InputError
from tare.samples.engines.begins import Begins

if TYPE_CHECKING:
    from ibis.expr.types import Table

Integers = npt.NDArray[np.int64]
Counts = tuple[Integers, npt.NDArray[np.uint16], Integers]
"""Latencies in ns, the indexes of runs, how often: arrays of shape (n,). A latency of a run may
be there several times."""

ROWS = 200_000
"""Rows that are taken from the engine at once."""


def counts_in_order(
    marked: Table, runs: Sequence[int], least: int, most: int, begins: Begins
) -> Iterator[list[Counts]]:
    """The latencies of one span's successful requests, each value whole in one piece.

    A piece has those of each of `begins`. `marked` has `run` (of `runs`, ascending), `latency_ns`
    from `least` to `most`, and `reached`. Raises InputError where latencies are so far apart that
    a run's number does not fit beside them.
    """
    bits = (runs[-1] - runs[0]).bit_length()
    widest = ((most - least + 1) << bits << begins.bits) - 1
    if widest.bit_length() > 63:
        raise InputError(
            f"latencies from {least} to {most} ns: no request takes as long; look at their unit"
        )
    # One number sorts faster than three.
    latency: Any = marked.latency_ns
    value = (latency.cast("int64") - least) * (1 << bits) + (marked.run.cast("int64") - runs[0])
    keys = marked.select(key=value * (1 << begins.bits) + marked.reached)
    numbers = np.array(runs) - runs[0]
    if keys.get_backend().name == "duckdb":
        # Short numbers sort faster than long ones. Spark does not know them.
        short = widest.bit_length() <= 32
        pieces = _sorted(keys.cast({"key": "uint32"}) if short else keys)
    else:
        pieces = _grouped(keys)
    for found, counts in _whole_values(pieces, bits + begins.bits):
        latencies = (found >> begins.bits >> bits) + least
        index = np.searchsorted(numbers, (found >> begins.bits) & ((1 << bits) - 1))
        # NumPy has its quickest sort for 16 bits.
        whole = latencies, index.astype(np.uint16), counts
        yield [_of(which, begins, found, whole) for which in range(begins.count)]


def _of(which: int, begins: Begins, keys: Integers, counts: Counts) -> Counts:
    """The counts that one of `begins` has."""
    if not begins.bits:
        return counts
    chosen = begins.has(which, keys & ((1 << begins.bits) - 1))
    latencies, index, requests = (column[chosen] for column in counts)
    return latencies, index, requests


def _sorted(keys: Table) -> Iterator[tuple[Integers, Integers]]:
    """The engine sorts, on disk where memory is short; equal keys are counted as they come."""
    backend: Any = keys.get_backend()
    # Ibis 12 streams by a name that DuckDB 2 has not any more. Tables in memory that the query
    # names are there: their totals have been asked for.
    query = backend.compile(keys.order_by("key"))
    for batch in backend.con.sql(query).to_arrow_reader(ROWS):
        found = batch.column(0).to_numpy()
        if found.size:
            first = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
            yield found[first].astype(np.int64), np.diff(np.append(first, found.size))


def _grouped(keys: Table) -> Iterator[tuple[Integers, Integers]]:
    """The engine counts; of times in nanoseconds there are nearly as many counts as requests."""
    table = keys.group_by("key").aggregate(requests=keys.count()).to_pyarrow()
    found, counts = (table[name].to_numpy().astype(np.int64) for name in ("key", "requests"))
    order = np.argsort(found)
    for start in range(0, order.size, ROWS):
        here = order[start : start + ROWS]
        yield found[here], counts[here]


def _whole_values(
    pieces: Iterator[tuple[Integers, Integers]], bits: int
) -> Iterator[tuple[Integers, Integers]]:
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
