# SPDX-License-Identifier: Apache-2.0
"""How the load and the recording of each run went, from its rows: nothing about their latency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.samples.describe.span_tree import IDS, orphans
from tare.samples.model import LoadStats
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import count_rows, rows_of
from tare.samples.sql.group_numbers import Group

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

PARTS = 20
"""Stretches of a run without slices of which each has a rate."""
MOST = 50_000
"""Requests of a run and span whose lag and company are looked at: they have to be sorted."""
LEAST = 100
"""Requests below which nothing is said of a rate."""


def load_stats(samples: Table, groups: Collection[Group]) -> dict[Group, LoadStats]:
    """Of `samples` as `Result.samples` gives them, of which `groups` are the runs and spans."""
    columns = set(samples.columns)
    found: dict[Group, LoadStats] = {}

    def put(group: Group, **known: float) -> None:
        found[group] = replace(found.get(group, LoadStats()), **known)

    if {"intended_ns", "start_ns"} <= columns:
        for group, behind, lag in _offered(samples):
            put(group, behind=behind, lag=lag)
    if "clock_error_ns" in columns:
        bound: Any = samples.clock_error_ns.cast("float64")
        for row in _rows(samples.group_by(["run", "span"]).aggregate(bound=bound.mean())):
            put((row["run"], row["span"]), clock_error_ns=row["bound"] or 0.0)
    if columns >= IDS:
        shares = orphans(samples)
        for group in groups:
            put(group, orphans=shares.get(group[0], 0.0))
    if "start_ns" in columns:
        spans = Counter(run for run, _ in groups)
        several = [run for run, number in spans.items() if number > 1]
        for group, arrivals, others in _under_way(samples, several):
            put(group, arrivals=arrivals, others=others)
    return found


def _offered(samples: Table) -> Iterator[tuple[Group, float, float]]:
    """By how much each run and span fell behind its intended rate, and its median lag.

    The rate is that of slices, or of a twentieth of a run each: in the median part, so that a
    machine that stood still once is no load that was too much.
    """
    sql = functions_of(samples)
    by = ["run", "span"]
    timed = samples.filter(samples.intended_ns.notnull() & samples.start_ns.notnull())
    timed = timed.mutate(
        due=timed.intended_ns.cast("int64"),
        sent=timed.start_ns.cast("int64"),
        took=timed.duration_ns.cast("int64"),
    )
    waited: Any = timed.sent - timed.due
    late = timed.group_by(by).aggregate(
        requests=timed.count(), first=timed.due.min(), last=timed.due.max(), most=waited.max()
    )
    late = late.filter((late.requests >= LEAST) & (late.most > 0) & (late.last > late.first))
    # Most loads are closed loops: of many requests one look must do.
    if not count_rows(late):
        return
    there = timed.inner_join(late, by)
    whole: Any = there.last - there.first
    part: Any = ((there.due - there.first) * PARTS / (whole + 1)).floor().cast("int64")
    if "slice" in timed.columns:
        part = sql.coalesce(there.slice.cast("int64"), part)
    parts = there.group_by([*by, part.name("part")]).aggregate(
        due=there.due.max() - there.due.min(), sent=there.sent.max() - there.sent.min()
    )
    ratios: dict[Group, list[float]] = {}
    for row in _rows(parts.filter(parts.due > 0)):
        ratios.setdefault((row["run"], row["span"]), []).append(row["sent"] / row["due"])
    # An exact median holds all that it is of.
    some = _in_the_middle(timed.mutate(start=timed.sent)).semi_join(late, by)
    delay: Any = some.sent - some.due
    middles = some.group_by(by).aggregate(
        delay=delay.median(), response=(delay + some.took).median()
    )
    for row in _rows(middles):
        group = row["run"], row["span"]
        slower = float(np.median(ratios[group])) if group in ratios else 1.0
        yield group, max(0.0, 1 - 1 / slower), (row["delay"] or 0) / max(row["response"] or 0, 1)


def _under_way(samples: Table, runs: Sequence[int]) -> Iterator[tuple[Group, float, float]]:
    """Arrivals a second of each span of `runs`, and how many others each request met."""
    sql = functions_of(samples)
    if not runs:
        return
    timed = samples.filter(
        samples.run.isin(runs) & samples.start_ns.notnull() & samples.duration_ns.notnull()
    )
    timed = _in_the_middle(timed.mutate(start=timed.start_ns.cast("int64")))
    start: Any = timed.start
    begun = timed.select("run", "span", at=start, more=sql.literal(1))
    ended = timed.select("run", "span", at=start + timed.duration_ns, more=sql.literal(-1))
    events = sql.union(begun, ended)
    # A request that ends as another begins is not met by it.
    window = sql.window(
        group_by=["run", "span"], order_by=["at", "more"], preceding=None, following=0
    )
    met = events.mutate(there=events.more.sum().over(window) - 1).filter(
        lambda event: event.more == 1
    )
    rows = met.group_by(["run", "span"]).aggregate(
        requests=met.count(), first=met.at.min(), last=met.at.max(), others=met.there.mean()
    )
    for row in _rows(rows):
        if row["last"] > row["first"]:
            rate = (row["requests"] - 1) / (row["last"] - row["first"]) * 1e9
            yield (row["run"], row["span"]), rate, float(row["others"])


def _in_the_middle(timed: Table) -> Table:
    """Of each run and span the middle stretch of time that has about `MOST` requests, or all."""
    sql = functions_of(timed)
    by = ["run", "span"]
    begin: Any = timed.start
    whole = timed.group_by(by).aggregate(
        requests=timed.count(), first=begin.min(), last=begin.max()
    )
    there = timed.inner_join(whole, by)
    half: Any = (there.last - there.first) / 2
    share: Any = sql.least(1.0, MOST / there.requests)
    return there.filter((there.start - there.first - half).abs() <= half * share)


def _rows(table: Table) -> list[dict[str, Any]]:
    return rows_of(table)
