# SPDX-License-Identifier: Apache-2.0
"""Any number of samples, described exactly or from a histogram."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.samples.engines.cut_bitmask import WarmUpEnd, WarmUpEnds
from tare.samples.engines.description import Described, Description
from tare.samples.engines.exact import Counts, Extent, Held, counts_in_order, hold
from tare.samples.engines.from_histogram import describe_histogram
from tare.samples.engines.histogram import histogram
from tare.samples.model import Distances
from tare.samples.sql.engine import count_rows, rows_of
from tare.samples.sql.group_numbers import Group, settled

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.engines.in_memory import RequestsInMemory
    from tare.samples.sql.table import Table
    from tare.stats.arrays import Array
    from tare.stats.distances import Pairs

EXACT_ROWS = {"duckdb": 200_000_000}
"""Up to so many samples are described exactly by an engine that sorts them, in about a minute on
two cores; an engine that counts each latency, and hands the counts over, has a tenth of it."""

NO_STEPS: Mapping[Group, int] = MappingProxyType({})

Count = Callable[["Table", WarmUpEnd], "pa.Table"]


def histogram_of(samples: Table, begin: WarmUpEnd) -> pa.Table:
    """The histogram of the requests from `begin` on."""
    return histogram(settled(samples, begin)).to_pyarrow()


def describe(samples: Table, at: Sequence[float], *, exact: bool | None = None) -> Description:
    """`describe_each` of all requests, which need no `place`."""
    (found,) = describe_each(samples, [{}], at, exact=exact)
    return found


def describe_each(
    samples: Table,
    begins: Sequence[WarmUpEnd],
    at: Sequence[float],
    *,
    exact: bool | None = None,
    count: Count = histogram_of,
    steps: Mapping[Group, int] = NO_STEPS,
    rows: int | None = None,
    extent: Extent | None = None,
    loaded: RequestsInMemory | None = None,
) -> list[Description]:
    """Describes every run and span from each of `begins` on, with quantiles at probabilities `at`.

    Distances between runs are those of the first of `begins` alone: they take most of the time,
    and no verdict on another end of the warm-up needs them.

    `samples` has `run` (whole numbers), `span`, `place` (0, 1 ... in time order), `latency_ns`
    (whole numbers, null where a request failed without an answer) and `ok`. Unless `exact` says
    so, the number of samples decides whether every request counts or a histogram is made, from
    above `EXACT_ROWS` on; `count` makes it, or has it already.
    `rows` is the number of samples, if it is known, `extent` what is known of a single span, and
    `loaded` has its samples, and perhaps others; see `hold`.
    Raises InputError for latencies that no request has.
    """
    if exact is None:
        most = EXACT_ROWS.get(samples.get_backend().name, EXACT_ROWS["duckdb"] // 10)
        exact = (count_rows(samples) if rows is None else rows) <= most
    if not exact:
        return [
            describe_histogram(count(samples, begin), at, with_distances=which == 0)
            for which, begin in enumerate(begins)
        ]
    return _exactly(samples, WarmUpEnds(begins), at, steps, extent, loaded)


def _exactly(  # noqa: PLR0917 - private, and called once
    samples: Table,
    begins: WarmUpEnds,
    at: Sequence[float],
    steps: Mapping[Group, int],
    extent: Extent | None,
    loaded: RequestsInMemory | None,
) -> list[Description]:
    marked = begins.marked(samples)
    held = None if extent is None else hold(marked, extent, begins, loaded)
    rows = _totals(marked) if held is None else held.totals()
    totals = [_summed(rows, partial(begins.has, which)) for which in range(begins.count)]
    quantiles: list[dict[Group, Mapping[float, float]]] = [{} for _ in totals]
    distances: list[dict[str, Distances]] = [{} for _ in totals]
    answered = marked.filter(marked.ok, marked.latency_ns.notnull())
    for span, found in _of_spans(answered, rows, totals, at, begins, steps, held):
        for which, spread in enumerate(found):
            if spread is None:
                continue
            table, between = spread.found()
            for run, of_run in zip(spread.runs, table.tolist(), strict=True):
                quantiles[which][run, span] = dict(zip(at, of_run, strict=True))
            if between is not None:
                distances[which][span] = between
    return [
        Description(
            {group: total.described(quantiles[which].get(group, {})) for group, total in groups},
            distances[which],
        )
        for which, groups in enumerate(by_group.items() for by_group in totals)
    ]


@dataclass(frozen=True)
class _Total:
    """What is counted of a run and span."""

    requests: int = 0
    errors: int = 0
    answered: int = 0
    sum: int = 0

    def described(self, quantiles: Mapping[float, float]) -> Described:
        mean = self.sum / self.answered if self.answered else None
        return Described(self.requests, self.errors, mean, quantiles)


def _summed(rows: Sequence[Mapping[str, Any]], has: Callable[[int], bool]) -> dict[Group, _Total]:
    """Each run and span's rows that one description has, in one total."""
    found: dict[Group, _Total] = {}
    for row in rows:
        if has(row["reached"]):
            group = row["run"], row["span"]
            total = found.get(group, _Total())
            found[group] = _Total(
                total.requests + row["requests"],
                total.errors + row["errors"],
                total.answered + row["answered"],
                total.sum + int(row["sum"] or 0),
            )
    return found


def _totals(marked: Table) -> list[dict[str, Any]]:
    ok: Any = marked.ok
    latency: Any = marked.latency_ns
    totals = marked.group_by(["run", "span", "reached"]).aggregate(
        requests=marked.count(),
        errors=(~ok).sum(),
        answered=latency.count(where=ok),
        # A mean of an engine's own may add in another order than the next engine's.
        sum=latency.sum(where=ok),
        least=latency.min(where=ok),
        most=latency.max(where=ok),
    )
    return sorted(rows_of(totals), key=lambda row: (row["span"], row["run"]))


def _of_spans(  # noqa: PLR0917 - private, and called once
    answered: Table,
    rows: Sequence[Mapping[str, Any]],
    totals: Sequence[Mapping[Group, _Total]],
    at: Sequence[float],
    begins: WarmUpEnds,
    steps: Mapping[Group, int],
    held: Held | None,
) -> Iterator[tuple[str, list[_Spread | None]]]:
    """Of each span and each of `begins` how its latencies are spread; None where no run has any.

    All spans come from one query: of hundreds, a query each would take minutes.
    """
    from tare.stats.distances import kinds_from

    rows = [row for row in rows if row["answered"]]
    if not rows:
        return
    runs = sorted({row["run"] for row in rows})
    requests = sum(row["answered"] for row in rows)
    latencies = min(row["least"] for row in rows), max(row["most"] for row in rows)
    sizes: list[dict[str, dict[int, int]]] = [{} for _ in totals]
    for of_span, groups in zip(sizes, totals, strict=True):
        for (run, span), total in groups.items():
            if total.answered:
                of_span.setdefault(span, {})[run] = total.answered
    least_of: dict[str, int] = {}
    for row in rows:
        least_of[row["span"]] = min(row["least"], least_of.get(row["span"], row["least"]))
    if held is None:
        ordered = counts_in_order(answered, least_of, runs, latencies, begins, requests)
    else:
        ordered = iter([(held.extent.span, held.counts(runs))])
    for span, pieces in ordered:
        rounded = {run: steps.get((run, span), 0) for run in runs}
        kinds = kinds_from(least_of[span])
        spreads = [
            _Spread(of_span[span], runs, at, rounded, () if which else kinds)
            if span in of_span
            else None
            for which, of_span in enumerate(sizes)
        ]
        for piece in pieces:
            for spread, counts in zip(spreads, piece, strict=True):
                if spread is not None:
                    spread.add(counts)
        yield span, spreads


class _Spread:
    """How the latencies of some of `runs` are spread, from counts that come in ascending order."""

    def __init__(
        self,
        sizes: Mapping[int, int],
        runs: Sequence[int],
        at: Sequence[float],
        steps: Mapping[int, int],
        kinds: Sequence[str],
    ) -> None:
        from tare.stats.distances import Pairs
        from tare.stats.ordered_quantiles import OrderedQuantiles

        self.runs = tuple(run for run in runs if run in sizes)
        self._index = np.array([self.runs.index(run) if run in sizes else 0 for run in runs])
        self._same = self.runs == tuple(runs)
        ordered = [sizes[run] for run in self.runs]
        self._quantiles = OrderedQuantiles(ordered, at, [steps.get(run, 0) for run in self.runs])
        self._kinds = kinds if len(ordered) > 1 else ()
        # Anderson and Darling's statistic takes as long as all others together.
        halves = [[kind for kind in self._kinds if (kind == "ad") == ad] for ad in (True, False)]
        self._pairs = [_InThread(Pairs(ordered, half)) for half in halves if half]

    def add(self, piece: Counts) -> None:
        """Takes the next; their indexes are those of all runs."""
        latencies, runs, counts = piece
        own = runs if self._same else self._index[runs]
        for pairs in self._pairs:
            pairs.add(latencies, own, counts)
        self._quantiles.add(latencies, own, counts)

    def found(self) -> tuple[Array, Distances | None]:
        """Quantiles (runs, probabilities), and distances if there are several runs."""
        found: dict[str, Array] = {}
        for pairs in self._pairs:
            found |= pairs.matrices()
        between = Distances(self.runs, {kind: found[kind] for kind in self._kinds})
        return self._quantiles.table(), between if found else None


class _InThread:
    """Pairs of runs whose values are taken in a thread, in order; the kernel needs no lock."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs, self._thread = pairs, ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def add(self, *piece: Any) -> None:
        """Waits until the piece before is taken: only one is held. Raises as `Pairs.add` does."""
        if self._last is not None:
            self._last.result()
        self._last = self._thread.submit(self._pairs.add, *piece)

    def matrices(self) -> dict[str, Array]:
        """All statistics, when all pieces are taken."""
        if self._last is not None:
            self._last.result()
        self._thread.shutdown()
        return self._pairs.matrices()
