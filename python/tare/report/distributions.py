# SPDX-License-Identifier: Apache-2.0
"""What the figures show of the samples: small tables, whatever the number of requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

    from tare.samples.result import Result

OF_FUNCTIONS = {"function": "string", "low_ns": "int64", "high_ns": "int64"}
"""Columns of `costs` that a layer without functions does not write."""
FIRST = 10_000
"""Requests of a lag plot, as in the published experiment."""
_STEPS = 24
"""Points of a percentile curve for each factor of ten of the tail."""
ABOVE = 10
"""A percentile is drawn where its run has at least so many requests above it."""

Place = tuple[str, str]
"""An environment and a condition."""


class Function(NamedTuple):
    """One function of a layer in one place; the layer as a whole where `function` is empty."""

    layer: str
    environment: str
    condition: str
    function: str


@dataclass(frozen=True)
class Curve:
    """Percentiles of one run: `tail` is -log10(1 - p), so 1 is the 90th and 2 the 99th."""

    tail: "NDArray[np.float64]"
    latency_ns: "NDArray[np.float64]"


@dataclass(frozen=True)
class Box:
    """Tukey's box in nanoseconds: whiskers end at the last request within 1.5 IQR."""

    first: float
    median: float
    third: float
    low: float
    high: float
    requests: int
    beyond: int
    """Requests outside of the whiskers, which are not drawn."""


def kept(result: "Result", runs: Iterable[int], span: str) -> "ir.Table | None":
    """Requests of `runs`: `run`, `span`, `place`, `start_ns`, `latency_ns`, the warm-up's too.

    Those are of one span, successful, in slices that were not left out. `places.settled` leaves
    out the warm-up as the verdict does.
    """
    import ibis

    from tare.samples.steadiness import with_place

    samples = result.samples()
    if samples is None:
        return None
    # A place is counted among all requests, those that failed or were left out as well.
    placed = with_place(samples.filter(samples.span == span, samples.run.isin(list(runs))))
    chosen: Any = placed.filter(placed.ok, ~placed.left_out)
    order = chosen.start_ns if "start_ns" in chosen.columns else chosen.place
    table = chosen.select("run", "latency_ns", "place", start_ns=order)
    stored = result.backend.create_table("report_kept", table, temp=True)
    return stored.mutate(span=ibis.literal(span))


def curves(samples: "ir.Table") -> dict[int, Curve]:
    """The percentile curve of every run of `samples` (columns `run`, `latency_ns`)."""
    import numpy as np

    requests = samples.group_by("run").agg(requests=samples.count()).execute()
    counts = dict(zip(requests["run"], requests["requests"], strict=True))
    if not counts:
        return {}
    longest = np.log10(max(max(counts.values()) / ABOVE, 2))
    tail = np.linspace(0, longest, int(np.ceil(_STEPS * longest)) + 1)
    ranks = [float(p) for p in 1 - 10**-tail]
    table = samples.group_by("run").agg(latency=samples.latency_ns.quantile(ranks)).execute()
    drawn = {}
    for run, latency in zip(table["run"], table["latency"], strict=True):
        supported = counts[run] * 10**-tail >= min(ABOVE, counts[run])
        values = np.asarray(latency, dtype=np.float64)
        drawn[int(run)] = Curve(tail[supported], values[supported])
    return drawn


def middle(runs: Iterable[Curve]) -> Curve:
    """The median over runs at each percentile that every one of them supports."""
    import numpy as np

    several = list(runs)
    points = min(len(curve.tail) for curve in several)
    values = np.median([curve.latency_ns[:points] for curve in several], axis=0)
    return Curve(several[0].tail[:points], values)


def boxes(samples: "ir.Table", places: Mapping[int, Place]) -> dict[Place, Box]:
    """One box for each environment and condition, over the requests of all of its runs.

    `places` says where each run belongs.
    """
    import ibis

    named = ("low", "high", "requests", "beyond")
    keys = list(dict.fromkeys(places.values()))
    if not keys:
        return {}
    cases = [(samples.run == run, keys.index(place)) for run, place in places.items()]
    placed = samples.select("latency_ns", place=ibis.cases(*cases))
    quarters = placed.group_by("place").agg(
        quarters=placed.latency_ns.quantile([0.25, 0.5, 0.75]).cast("array<float64>")
    )
    joined = placed.inner_join(quarters, "place")
    first, third = joined.quarters[0], joined.quarters[2]
    reach = 1.5 * (third - first)
    within = joined.latency_ns.between(first - reach, third + reach)
    table = joined.group_by("place", "quarters").agg(
        low=joined.latency_ns.min(where=within),
        high=joined.latency_ns.max(where=within),
        requests=joined.count(),
        beyond=joined.count(where=~within),
    )
    return {
        keys[row["place"]]: Box(*row["quarters"], *(row[name] for name in named))
        for row in table.to_pyarrow().to_pylist()
    }


def first_requests(samples: "ir.Table", run: int) -> "NDArray[np.float64]":
    """Latencies in nanoseconds of the first FIRST requests of one run, in their order."""
    import numpy as np

    chosen = samples.filter(samples.run == run).order_by("start_ns").limit(FIRST)
    return np.asarray(chosen.latency_ns.execute(), dtype=np.float64)


def costs_of(costs: "ir.Table", runs: Iterable[int]) -> "ir.Table":
    """What the layers of these runs cost; columns that none of them has are null."""
    import ibis

    absent = {name: type_ for name, type_ in OF_FUNCTIONS.items() if name not in costs.columns}
    rows = costs.filter(costs.run.isin(list(runs)))
    return rows.mutate(**{name: ibis.null(type_) for name, type_ in absent.items()})


def own_times(costs: "ir.Table") -> "dict[Function, NDArray[np.float64]]":
    """Bins of the layers' own time: rows of low, high (ns) and count, over all runs."""
    import numpy as np

    bins = costs.filter((costs.metric == "own_time") & (costs["count"] > 0))
    keys = [*Function._fields, "low_ns", "high_ns"]
    table = bins.group_by(keys).agg(calls=bins["count"].sum()).order_by(keys)
    found: dict[Function, list[tuple[int, int, int]]] = {}
    for row in table.to_pyarrow().to_pylist():
        values = (row["low_ns"], row["high_ns"], row["calls"])
        found.setdefault(_function(row), []).append(values)
    return {function: np.array(rows, dtype=np.float64) for function, rows in found.items()}


def binned_quantile(bins: "NDArray[np.float64]", p: float) -> float:
    """The p-quantile of rows of low, high, count, to the middle of its bin."""
    import numpy as np

    reached = np.searchsorted(np.cumsum(bins[:, 2]), p * bins[:, 2].sum())
    return float(bins[min(int(reached), len(bins) - 1), :2].mean())


def binned_sum(bins: "NDArray[np.float64]") -> float:
    """The sum of the values in rows of low, high, count, each at the middle of its bin."""
    return float((bins[:, :2].mean(axis=1) * bins[:, 2]).sum())


def counters(costs: "ir.Table") -> dict[tuple[Function, str], int]:
    """Counters of the layers by function and metric, over all runs."""
    rows = costs.filter(costs.metric != "own_time")
    keys = [*Function._fields, "metric"]
    table = rows.group_by(keys).agg(total=rows["count"].sum()).order_by(keys)
    return {(_function(row), row["metric"]): row["total"] for row in table.to_pyarrow().to_pylist()}


def _function(row: Mapping[str, Any]) -> Function:
    return Function(*(str(row[name] or "") for name in Function._fields))
