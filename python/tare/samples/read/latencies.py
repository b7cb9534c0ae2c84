# SPDX-License-Identifier: Apache-2.0
"""The latencies of a result folder themselves, for what summaries of runs cannot tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tare.errors import InputError
from tare.samples.describe.steadiness import taking_turns, with_place
from tare.samples.describe.warm_up_cuts import first_settled
from tare.samples.model import SpanKey
from tare.samples.read.result import open_result, readable
from tare.samples.sql.group_numbers import of_runs, settled

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.stats.arrays import Array

Runs = dict[tuple[str, int], "Array"]
"""Of each run, by condition and block, its latencies in ns, (n,) with n at least 1."""


def latencies(folder: Path) -> dict[SpanKey, Runs]:
    """Of every valid run, without failed requests and slices that are left out, by place.

    The warm-up ends where a verdict on the result takes it to end, for all runs of a place alike.
    All of them are held in memory, 8 bytes each. Raises InputError when the folder is no result.
    """
    with readable(folder):
        result = open_result(folder)
        samples = result.samples()
        if samples is None:
            return {}
        entries = {entry.run: entry for entry in result.manifest.runs}
        conditions = {run: (entry.environment, entry.condition) for run, entry in entries.items()}
        placed = with_place(of_runs(samples, entries))
        there = placed.filter(~placed.left_out)
        first = first_settled(there, conditions, taking_turns(result.manifest))
        kept = settled(there, first).filter(lambda row: row.ok & row.latency_ns.notnull())
        table = kept.select("run", "span", "latency_ns").order_by("run", "span").to_pyarrow()
    found: dict[SpanKey, Runs] = {}
    for run, span, part in _parts(table):
        entry = entries[run]
        if entry.valid:
            place = entry.environment, span
            found.setdefault(place, {})[entry.condition, entry.block] = part
    return found


def durations_by_run(folder: Path) -> dict[str, list[dict[str, Array]]]:
    """Of each declared condition, the baseline first, its valid runs by block: durations by span.

    In ns, (n,), of all successful requests in time order, as published analyses take them. Raises
    InputError when the folder is no result, or has several environments (or, where those are
    compared, conditions).
    """
    with readable(folder):
        result = open_result(folder)
        manifest, samples = result.manifest, result.samples()
        places = {entry.environment for entry in manifest.runs}
        if len(places) > 1:
            others = "environments" if manifest.compare == "conditions" else "conditions"
            raise InputError(f"{folder}: has {len(places)} {others}; --method compares in one")
        parts: Iterator[tuple[int, str, Array]] = iter(())
        if samples is not None:
            kept = with_place(samples).filter(lambda row: row.ok & row.duration_ns.notnull())
            table = kept.select("run", "span", "place", "duration_ns")
            parts = _parts(table.order_by("run", "span", "place").to_pyarrow().drop("place"))
        of: dict[int, dict[str, Array]] = {}
        for run, span, durations in parts:
            of.setdefault(run, {})[span] = durations
    found: dict[str, list[dict[str, Array]]] = {manifest.baseline: []}
    for entry in sorted(manifest.runs, key=lambda entry: entry.block):
        if entry.valid and entry.condition != manifest.control:
            found.setdefault(entry.condition, []).append(of.get(entry.run, {}))
    return found


def _parts(table: pa.Table) -> Iterator[tuple[int, str, Array]]:
    """The last column of a table that is sorted by `run` and `span`, by these."""
    if table.num_rows == 0:
        return
    runs = table["run"].to_numpy()
    spans = table["span"].combine_chunks().dictionary_encode()
    values = table.column(table.num_columns - 1).to_numpy().astype(np.float64)
    codes = spans.indices.to_numpy()
    starts = np.flatnonzero(np.diff(runs, prepend=-1).astype(bool) | np.diff(codes, prepend=-1))
    for start, part in zip(starts, np.split(values, starts[1:]), strict=True):
        yield int(runs[start]), spans.dictionary[int(codes[start])].as_py(), part
