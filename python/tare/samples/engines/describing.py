# SPDX-License-Identifier: Apache-2.0
"""Any number of samples, described exactly or from a histogram."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tare.samples.engines.binned import describe_histogram
from tare.samples.engines.description import Described, Description, Group
from tare.samples.engines.exact import counts_in_order
from tare.samples.engines.histogram import histogram
from tare.samples.engines.turns import Turns
from tare.samples.model import Distances

if TYPE_CHECKING:
    import pyarrow as pa
    from ibis.expr.types import Table

    from tare.stats.arrays import Array

EXACT_ROWS = {"duckdb": 200_000_000}
"""Up to so many samples are described exactly by an engine that sorts them, in about a minute on
two cores; an engine that counts each latency, and hands the counts over, has a tenth of it."""

EVERY_KIND = 20_000_000
"""Up to so many samples distances are told by every statistic; beyond, by those that are tested."""
TESTED = ("ks", "ad")

MOST_THREADS = 8
"""More would wait for the one that reads the stream."""


Count = Callable[["Table"], "pa.Table"]


def _count(samples: Table) -> pa.Table:
    return histogram(samples).to_pyarrow()


def describe(
    samples: Table,
    at: Sequence[float],
    *,
    exact: bool | None = None,
    count: Count = _count,
    every_kind: int = EVERY_KIND,
) -> Description:
    """Describes every run and span of `samples`, with type 7 quantiles at the probabilities `at`.

    `samples` has `run` (whole numbers), `span`, `latency_ns` (whole numbers, null where a request
    failed without an answer) and `ok`. Unless `exact` says so, the number of samples decides
    whether every request counts or a histogram is made, from above `EXACT_ROWS` on; `count` makes
    it, or has it already. Of more than `every_kind` samples only the distances are told that are
    tested.
    Raises InputError for latencies that no request has.
    """
    if exact is None:
        most = EXACT_ROWS.get(samples.get_backend().name, EXACT_ROWS["duckdb"] // 10)
        exact = samples.count().to_pyarrow().as_py() <= most
    if not exact:
        return describe_histogram(count(samples), at)
    rows = _totals(samples)
    quantiles: dict[Group, Mapping[float, float]] = {}
    distances = {}
    spans = {row["span"] for row in rows}
    for span in sorted(spans):
        of_span = [row for row in rows if row["span"] == span and row["answered"]]
        if not of_span:
            continue
        answered = samples.filter(samples.ok, samples.latency_ns.notnull())
        if len(spans) > 1:
            answered = answered.filter(answered.span == span)
        table, found = _of_span(answered, of_span, at, every_kind)
        for row, of_run in zip(of_span, table, strict=True):
            quantiles[row["run"], span] = dict(zip(at, of_run.tolist(), strict=True))
        if len(of_span) > 1:
            distances[span] = found
    groups = {
        (row["run"], row["span"]): Described(
            row["requests"],
            row["errors"],
            int(row["sum"]) / row["answered"] if row["answered"] else None,
            quantiles.get((row["run"], row["span"]), {}),
        )
        for row in rows
    }
    return Description(groups, distances)


def _totals(samples: Table) -> list[dict[str, Any]]:
    ok: Any = samples.ok
    latency: Any = samples.latency_ns
    rows = (
        samples.group_by(["run", "span"])
        .aggregate(
            requests=samples.count(),
            errors=(~ok).sum(),
            answered=latency.count(where=ok),
            # A mean of an engine's own may add in another order than the next one.
            sum=latency.sum(where=ok),
            least=latency.min(where=ok),
            most=latency.max(where=ok),
        )
        .to_pyarrow()
        .to_pylist()
    )
    return sorted(rows, key=lambda row: (row["span"], row["run"]))


def _of_span(
    answered: Table, rows: Sequence[Mapping[str, Any]], at: Sequence[float], every_kind: int
) -> tuple[Array, Distances]:
    """Quantiles (runs, probabilities) and distances between runs."""
    from tare.stats.distances import Pairs, kinds_from
    from tare.stats.ordered_quantiles import OrderedQuantiles

    sizes = [row["answered"] for row in rows]
    runs = [row["run"] for row in rows]
    least, most = min(row["least"] for row in rows), max(row["most"] for row in rows)
    quantiles = OrderedQuantiles(sizes, at)
    threads = min(len(os.sched_getaffinity(0)), MOST_THREADS)
    kinds = kinds_from(least) if sum(sizes) <= every_kind else TESTED
    with Turns([Pairs(sizes, kinds) for _ in range(threads)]) as turns:
        for counts in counts_in_order(answered, runs, least, most):
            turns.add(counts)
            quantiles.add(*counts)
        pairs = turns.merged()
    return quantiles.table(), Distances(tuple(runs), pairs.matrices())
