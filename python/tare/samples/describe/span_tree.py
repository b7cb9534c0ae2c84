# SPDX-License-Identifier: Apache-2.0
"""Spans that have lost the span around them, by the ids of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tare.samples.sql.engine import rows_of

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

IDS = {"span", "trace_id", "span_id", "parent_id"}


def orphans(samples: Table) -> dict[int, float]:
    """The share of each run's spans that lack the span around them; runs without any are absent.

    A trace is whole where all of it lies in one span, or has one caller that nobody recorded. Of
    kinds of spans that mostly have such a caller none is missing: the traces begin with them.
    """
    ids = samples.select("run", "span", "trace_id", "span_id", "parent_id")
    known = ids.select("run", "trace_id", parent_id="span_id").distinct().mutate(there=True)
    joined = ids.left_join(known, ["run", "trace_id", "parent_id"])
    lacks: Any = joined.parent_id.notnull() & joined.there.isnull()
    marked = joined.select("run", "span", "trace_id", "parent_id", lost=lacks)
    kinds = marked.filter(marked.parent_id.notnull()).group_by("span")
    inner = kinds.aggregate(share=lambda rows: rows.lost.cast("int64").mean())
    tops = marked.filter(marked.lost | marked.parent_id.isnull()).group_by(["run", "trace_id"])
    broken = tops.aggregate(tops=lambda rows: rows.parent_id.fill_null("").nunique())
    lost = (
        marked.filter(marked.lost)
        .semi_join(inner.filter(inner.share < 0.5), "span")
        .semi_join(broken.filter(broken.tops > 1), ["run", "trace_id"])
    )
    spans = _by_run(ids)
    return {run: count / spans[run] for run, count in _by_run(lost).items()}


def _by_run(rows: Table) -> dict[int, int]:
    counted = rows.group_by("run").aggregate(rows=rows.count())
    return {row["run"]: row["rows"] for row in rows_of(counted)}
