# SPDX-License-Identifier: Apache-2.0
"""What one pass over all samples says of each run and span, and to what its times were rounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.samples.engines import Extent
from tare.samples.engines.in_memory import STEPS, RequestsInMemory
from tare.samples.sql.engine import rows_of
from tare.samples.sql.group_numbers import Group, of_runs
from tare.stats.kernel import sort
from tare.stats.tick import tick

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

LEAST = 100
"""Requests below which the step of their latencies may be chance."""
MOST_TIED = 2_000
"""Distinct latencies of a run among which steps are looked for: of more, they are small."""
HEAD = 20_000
"""Latencies that are looked at first: if more than `MOST_TIED` of them are distinct, so are all."""


@dataclass(frozen=True)
class Survey:
    """What one pass over all samples says of each run and span."""

    sizes: Mapping[Group, int]
    """Places."""
    rows: Mapping[Group, int]
    whole: Mapping[Group, tuple[int, float]]
    coarse: frozenset[Group]
    """Whose latencies all divide by 10 ns, so that there is a step to look for."""
    tied: frozenset[Group]
    """Of whose latencies many are equal, so that there is a tick to look for."""
    has_zeros: bool
    latencies: Mapping[Group, tuple[int, int]]
    """The least and the greatest of successful requests."""

    def extent(self, runs: Collection[int]) -> Extent | None:
        """Of these runs, if they have one span."""
        known = {group: self.latencies[group] for group in self.latencies if group[0] in runs}
        spans = {span for run, span in self.rows if run in runs}
        if len(spans) != 1 or not known:
            return None
        return Extent(
            spans.pop(),
            sorted(run for run, _ in self.rows if run in runs),
            sum(rows for (run, _), rows in self.rows.items() if run in runs),
            min(least for least, _ in known.values()),
            max(most for _, most in known.values()),
        )


def surveyed(samples: Table, loaded: RequestsInMemory | None = None) -> Survey:
    """Of `samples`, which `loaded` has if it is there."""
    if loaded is not None:
        return _in_memory(loaded)
    by = ["run", "span"]
    ok: Any = samples.ok
    value: Any = samples.latency_ns
    rows = samples.group_by(by).aggregate(
        places=samples.place.max() + 1,
        rows=samples.count(),
        fine=((value % 10) != 0).sum(where=ok),
        least=value.min(where=ok),
        most=value.max(where=ok),
        mean=value.mean(where=ok),
        answered=ok.cast("int64").sum(),
        distinct=value.approx_nunique(where=ok),
    )
    found = {(row["run"], row["span"]): row for row in rows_of(rows.order_by(by))}
    return Survey(
        {group: row["places"] for group, row in found.items()},
        {group: row["rows"] for group, row in found.items()},
        {group: (row["answered"], row["mean"]) for group, row in found.items() if row["answered"]},
        frozenset(group for group, row in found.items() if not row["fine"]),
        frozenset(
            group
            for group, row in found.items()
            if row["answered"] >= LEAST and row["distinct"] <= min(row["answered"] / 2, MOST_TIED)
        ),
        any(row["least"] == 0 for row in found.values()),
        {
            group: (row["least"], row["most"])
            for group, row in found.items()
            if row["least"] is not None
        },
    )


def steps_of(
    samples: Table, survey: Survey, loaded: RequestsInMemory | None = None
) -> dict[Group, int]:
    """The step in ns of the latencies of a run and span, where it is not 1: to which they were
    rounded, or the tick of their clock."""
    if loaded is None:
        steps, ticks = _steps(samples, survey.coarse), _ticks(samples, survey.tied)
    else:
        steps, ticks = _steps_in_memory(loaded, survey.coarse), _ticks_in_memory(loaded, survey)
    return steps | {group: max(step, steps.get(group, 0)) for group, step in ticks.items()}


def _steps(samples: Table, coarse: Collection[Group]) -> dict[Group, int]:
    """The largest power of ten of ns that all latencies of each `coarse` run and span divide by.

    Of fewer than a hundred, or of one value only, that may be chance; those are absent.
    """
    if not coarse:
        return {}
    ok: Any = samples.ok
    value: Any = samples.latency_ns
    some = of_runs(samples, {run for run, _ in coarse})
    rows = some.group_by(["run", "span"]).aggregate(
        count=value.count(where=ok),
        least=value.min(where=ok),
        most=value.max(where=ok),
        **{f"by_{step}": ((value % step) != 0).sum(where=ok) for step in STEPS},
    )
    found = {}
    for row in rows_of(rows):
        known = [step for step in STEPS if not row[f"by_{step}"]]
        if known and row["count"] >= LEAST and row["least"] < row["most"]:
            found[row["run"], row["span"]] = max(known)
    return found


def _ticks(samples: Table, tied: Collection[Group]) -> dict[Group, int]:
    """The ticks in ns of the clock of each `tied` run and span: of any length, found by the
    latencies that many requests have in common."""
    if not tied:
        return {}
    ok: Any = samples.ok
    some = of_runs(samples, {run for run, _ in tied}).filter(ok)
    by = ["run", "span", "latency_ns"]
    rows = rows_of(some.group_by(by).aggregate(count=some.count()).order_by(by))
    values: dict[Group, list[tuple[int, int]]] = {}
    for row in rows:
        values.setdefault((row["run"], row["span"]), []).append((row["latency_ns"], row["count"]))
    found = {group: tick(*zip(*values[group], strict=True)) for group in tied if group in values}
    return {group: round(step) for group, step in found.items() if step is not None}


def _in_memory(loaded: RequestsInMemory) -> Survey:
    found = {(run, loaded.span): loaded.runs[run] for run in sorted(loaded.runs)}
    tied = {
        group
        for group, run in found.items()
        if run.successful >= LEAST and _distinct(loaded, group[0]) <= _most_tied(run.successful)
    }
    return Survey(
        {group: run.places for group, run in found.items()},
        {group: run.requests for group, run in found.items()},
        {
            group: (run.successful, run.sum / run.answered)
            for group, run in found.items()
            if run.answered
        },
        frozenset(group for group, run in found.items() if run.step > 1 and run.answered),
        frozenset(tied),
        any(run.least == 0 for run in found.values()),
        {
            group: (run.least, run.most)
            for group, run in found.items()
            if run.least is not None and run.most is not None
        },
    )


def _most_tied(successful: int) -> float:
    return min(successful / 2, MOST_TIED)


def _distinct(loaded: RequestsInMemory, run: int) -> int:
    """How many latencies of a run differ; of more than can be tied, a lower bound."""
    parts: list[Any] = []
    for part in loaded.latencies(run):
        parts.append(part)
        if sum(piece.size for piece in parts) >= HEAD:
            break
    head = np.concatenate(parts)[:HEAD]
    some = np.unique(head).size
    if some > MOST_TIED or head.size < HEAD:
        return some
    return int(_counted(loaded, run)[0].size)


def _counted(loaded: RequestsInMemory, run: int) -> tuple[Any, Any]:
    """The distinct latencies of a run, ascending, and how often each is there: arrays (n,)."""
    values = np.concatenate([*loaded.latencies(run)])
    sort(values)
    first = np.flatnonzero(np.append(values.size > 0, values[1:] != values[:-1]))
    return values[first], np.diff(np.append(first, values.size))


def _steps_in_memory(loaded: RequestsInMemory, coarse: Collection[Group]) -> dict[Group, int]:
    runs = {group: loaded.runs[group[0]] for group in coarse}
    return {
        group: run.step
        for group, run in runs.items()
        if run.answered >= LEAST and run.least != run.most
    }


def _ticks_in_memory(loaded: RequestsInMemory, survey: Survey) -> dict[Group, int]:
    found = {group: tick(*_counted(loaded, group[0])) for group in sorted(survey.tied)}
    return {group: round(step) for group, step in found.items() if step is not None}
