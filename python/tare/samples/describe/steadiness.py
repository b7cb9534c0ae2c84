# SPDX-License-Identifier: Apache-2.0
"""How each run went over its time, from means of batches: samples stay in the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import arrays_of, count_rows
from tare.samples.sql.group_numbers import Group, of_group
from tare.stats.steady import Steadiness, classify
from tare.stats.steady_shared import cells, course, of_machine

if TYPE_CHECKING:
    import numpy.typing as npt

    from tare.samples.engines.in_memory import RequestsInMemory
    from tare.samples.manifest import Manifest
    from tare.samples.sql.table import Table
    from tare.stats.arrays import Array

BATCHES = 1_000
"""At most so many batches a run and span."""
FEWEST = 5
"""Requests that a batch has at least, MSER-5's."""
NOBODY: Mapping[str, Sequence[Sequence[int]]] = MappingProxyType({})


@dataclass(frozen=True)
class Course:
    """A run's batches: means of log latency (n,), and where they begin and end (n + 1,).

    `within` is the variance of log latencies around the means of their batches.
    """

    batches: Array
    edges: npt.NDArray[np.int64]
    within: float


def courses_of(
    samples: Table,
    sizes: Mapping[Group, int],
    taking_turns: Mapping[str, Sequence[Sequence[int]]] = NOBODY,
    loaded: RequestsInMemory | None = None,
) -> dict[Group, Course]:
    """The course of each run and span, without what the machine did to all of a block alike.

    `samples` and `sizes` are as for `batch_means`. `taking_turns` has, for each environment, the
    runs of each interleaved block. `loaded` has the samples, if it is there.
    """
    courses = read_courses(samples, sizes) if loaded is None else courses_in_memory(loaded, sizes)
    for blocks in taking_turns.values():
        for span in {span for _, span in courses}:
            _leave_machine_out(courses, [[(run, span) for run in block] for block in blocks])
    return courses


def classified(courses: Mapping[Group, Course]) -> dict[Group, Steadiness]:
    """How each run and span went; those that are too short for it are absent."""
    found = {
        key: classify(run_course.batches, run_course.edges, run_course.within)
        for key, run_course in courses.items()
    }
    return {key: steadiness for key, steadiness in found.items() if steadiness is not None}


def taking_turns(manifest: Manifest) -> dict[str, list[list[int]]]:
    """The valid runs of each block whose runs shared its time, by environment."""
    if manifest.design not in ("interleaved", "alternating"):
        return {}
    found: dict[str, dict[int, list[int]]] = {}
    for run in manifest.runs:
        if run.valid:
            blocks = found.setdefault(run.environment, {})
            blocks.setdefault(run.block, []).append(run.run)
    return {environment: list(blocks.values()) for environment, blocks in found.items()}


def read_courses(samples: Table, sizes: Mapping[Group, int]) -> dict[Group, Course]:
    """The batches of each run and span, in time order; see `batch_means`."""
    table = arrays_of(batch_means(samples, sizes).order_by("run", "span", "place"))
    names = ("run", "place", "level", "spread", "span")
    run, place, level, spread, span = (table[name] for name in names)
    found = {}
    start = 0
    for key, rows in groupby(zip(run.tolist(), span.tolist(), strict=True)):
        end = start + len(list(rows))
        edges = np.append(place[start:end], sizes[key])
        found[key] = Course(level[start:end], edges, float(spread[start:end].mean()))
        start = end
    return found


def courses_in_memory(loaded: RequestsInMemory, sizes: Mapping[Group, int]) -> dict[Group, Course]:
    """The same of samples in memory, in two threads."""
    with ThreadPoolExecutor(2) as threads:
        ordered = sorted(sizes)
        found = threads.map(lambda group: _course(loaded, group[0], sizes[group]), ordered)
        return {
            group: run_course
            for group, run_course in zip(ordered, found, strict=True)
            if run_course is not None
        }


def _course(loaded: RequestsInMemory, run: int, places: int) -> Course | None:
    batches = int(np.clip(places // FEWEST, 1, BATCHES))
    levels, squares = np.zeros(batches), np.zeros(batches)
    there = np.zeros(batches, np.int64)
    for stretch in loaded.runs[run].stretches:
        values = loaded.values[stretch.start : stretch.end]
        out = np.flatnonzero((values == 0) | (values >= loaded.no_latency))
        with np.errstate(divide="ignore"):
            level = np.log(values, dtype=np.float64)
        level[out] = 0.0
        batch: Any
        if isinstance(stretch.places, int):
            end = stretch.places + values.size - 1
            batch = np.arange(stretch.places * batches // places, end * batches // places + 1)
            # The first of its places, from the first place of the stretch.
            begin = np.maximum(-(-batch * places // batches) - stretch.places, 0)
            levels[batch] += np.add.reduceat(level, begin)
            squares[batch] += np.add.reduceat(level * level, begin)
            there[batch] += np.diff(np.append(begin, values.size))
            out = (out + stretch.places) * batches // places
        else:
            batch = stretch.places.astype(np.int64) * batches // places
            levels += np.bincount(batch, level, batches)
            squares += np.bincount(batch, level * level, batches)
            there += np.bincount(batch, minlength=batches)
            out = batch[out]
        there -= np.bincount(out, minlength=batches)
    enough = np.flatnonzero((there > 0) & (there * batches * 2 >= places))
    if not enough.size:
        return None
    level = levels[enough] / there[enough]
    spread = np.maximum(squares[enough] / there[enough] - level * level, 0.0)
    edges = np.append(-(-enough * places // batches), places)
    return Course(level, edges, float(spread.mean()))


def _leave_machine_out(courses: dict[Group, Course], blocks: Sequence[Sequence[Group]]) -> None:
    there = [[key for key in block if key in courses] for block in blocks]
    moves = of_machine(
        [[course(courses[key].batches, courses[key].edges) for key in block] for block in there]
    )
    for block, move in zip(there, moves, strict=True):
        for key in block:
            run_course = courses[key]
            courses[key] = replace(
                run_course, batches=run_course.batches - move[cells(run_course.edges)]
            )


def batch_means(samples: Table, sizes: Mapping[Group, int]) -> Table:
    """The mean log latency (`level`, ln ns) of each batch, with its first `place` and the variance
    around it (`spread`).

    `samples` has `run`, `span`, `place` (0, 1 ... in time order), `latency_ns` and `ok`; rows may
    be missing. The places of each run and span, of which `sizes` says how many there are, are
    divided into at most 1,000 batches of equal length, of at least five. A batch of which less
    than half is there and ok is left out: its mean would be noisier than the others.
    """
    sql = functions_of(samples)
    by = ["run", "span"]
    there = samples.filter(samples.ok & (samples.latency_ns > 0))
    batch: Any = there.place * _batches(of_group(there, sizes)) // of_group(there, sizes)
    # The engine may look at rows that the filter leaves out, and a logarithm of 0 is an error.
    level: Any = sql.greatest(there.latency_ns, 1).ln()
    means = there.group_by([*by, batch.name("batch")]).aggregate(
        level=level.mean(), squares=(level * level).mean(), there=there.count()
    )
    means = means.mutate(places=of_group(means, sizes))
    means = means.mutate(batches=_batches(means.places))
    enough = means.filter(means.there * means.batches * 2 >= means.places)
    first: Any = (enough.batch * enough.places + enough.batches - 1) // enough.batches
    # A variance that an engine counts value by value costs a hundred million of them seconds.
    spread: Any = sql.greatest(enough.squares - enough.level * enough.level, 0.0)
    return enough.select(*by, "level", place=first, spread=spread)


def _batches(places: Any) -> Any:
    sql = functions_of(places)
    return sql.least(BATCHES, sql.greatest(places // FEWEST, 1))


def with_place(samples: Table) -> Table:
    """Samples of a result folder with `place`, 0, 1 ... in time order within a run and span.

    The load numbers its requests as they end, so only spans, which have no `seq`, are sorted.
    Requests that were only counted stand in the order of their bins, which is none of time: they
    get a place by chance.
    """
    sql = functions_of(samples)
    if not {"seq", "start_ns"} & set(samples.columns):
        numbered = samples.mutate(row=sql.row_number())
        chance = sql.window(group_by=["run", "span"], order_by=numbered.row.hash())
        return numbered.mutate(place=sql.row_number().over(chance)).drop("row")
    window = sql.window(group_by=["run", "span"], order_by="start_ns")
    if "seq" not in samples.columns:
        return samples.mutate(place=sql.row_number().over(window))
    if "start_ns" not in samples.columns:
        return samples.mutate(place=samples.seq.cast("int64"))
    numbered = samples.filter(samples.seq.notnull())
    others = samples.filter(samples.seq.isnull())
    # Both parts of a union are read, in every query on it; of most results one part has no row.
    if not count_rows(others.limit(1)):
        return samples.mutate(place=samples.seq.cast("int64"))
    whole: Table = sql.union(
        numbered.mutate(place=numbered.seq.cast("int64")),
        others.mutate(place=sql.row_number().over(window)),
    )
    return whole
