# SPDX-License-Identifier: Apache-2.0
"""Two numbers of each run that are no times: requests per second, and the share that failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tare.samples.model import ERROR_RATE, THROUGHPUT, Run
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tare.samples.sql.group_numbers import Group
    from tare.samples.sql.table import Table


@dataclass(frozen=True)
class Counted:
    """What is counted of all rows of a run, whatever their span."""

    rows: int
    failed: int
    """Rows that did not succeed."""
    lost: int
    """Rows without a usable time."""
    rate: float | None
    """Successful requests per second of the others; None without start times."""


def counted(rows: Table, good: Any, ok: Any) -> dict[int, Counted]:
    """What one pass over the rows of a result says of each run.

    `good` tells which rows have a usable time, `ok` which succeeded. Rates are those of
    `throughputs` where all rows have one span.
    """
    sql = functions_of(rows)
    columns = rows.columns
    nothing: Any = sql.null("int64")
    start: Any = rows.start_ns.cast("int64") if "start_ns" in columns else nothing
    marked = rows.select(
        "run",
        "duration_ns",
        start=start,
        good=good,
        ok=ok,
        part=rows.slice.cast("int64") if "slice" in columns else sql.literal(0),
    )
    timed: Any = marked.good & marked.start.notnull() & marked.duration_ns.notnull()
    # A sum of times that are none may be beyond 64 bits.
    end: Any = timed.ifelse(marked.start + marked.duration_ns.cast("int64"), nothing)
    parts = marked.group_by(["run", "part"]).aggregate(
        rows=marked.count(),
        failed=(~marked.ok).cast("int64").sum(),
        lost=(~marked.good).cast("int64").sum(),
        answered=marked.ok.cast("int64").sum(where=timed),
        first=marked.start.min(where=timed),
        last=end.max(),
    )
    runs = parts.group_by("run").aggregate(
        rows=parts["rows"].sum(),
        failed=parts.failed.sum(),
        lost=parts.lost.sum(),
        answered=parts.answered.sum(),
        time=(parts["last"] - parts["first"]).sum(),
    )
    return {
        int(row["run"]): Counted(
            int(row["rows"]),
            int(row["failed"]),
            int(row["lost"]),
            1e9 * row["answered"] / row["time"] if row["answered"] and row["time"] else None,
        )
        for row in rows_of(runs)
    }


def throughputs(samples: Table) -> dict[Group, float]:
    """Successful requests per second of each run and span, warm-up included.

    `samples` are as `Result.samples` has them. The time is from the first start to the last end;
    of runs that took turns in slices it is the sum over their slices. Runs without start times are
    absent.
    """
    sql = functions_of(samples)
    if "start_ns" not in samples.columns:
        return {}
    timed = samples.filter(samples.start_ns.notnull() & samples.duration_ns.notnull())
    start: Any = timed.start_ns.cast("int64")
    timed = timed.mutate(
        start=start,
        end=start + timed.duration_ns.cast("int64"),
        part=timed.slice.cast("int64") if "slice" in timed.columns else sql.literal(0),
    )
    parts = timed.group_by(["run", "span", "part"]).aggregate(
        answered=timed.ok.cast("int64").sum(), time=timed.end.max() - timed.start.min()
    )
    rows = parts.group_by(["run", "span"]).aggregate(
        answered=parts.answered.sum(), time=parts.time.sum()
    )
    return {
        (row["run"], row["span"]): 1e9 * row["answered"] / row["time"]
        for row in rows_of(rows)
        if row["time"] > 0 and row["answered"] > 0
    }


def with_rates(run: Run, throughput: Mapping[Group, float]) -> Run:
    """The run with its rates among its summaries."""
    found = dict(run.summaries)
    if (rate := throughput.get((run.run, run.span))) is not None:
        found[THROUGHPUT] = rate
    if run.answered:
        found[ERROR_RATE] = run.errors / run.requests
    return replace(run, summaries=found)
