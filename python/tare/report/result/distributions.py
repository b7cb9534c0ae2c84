# SPDX-License-Identifier: Apache-2.0
"""What the figures show of the samples: small tables, whatever the number of requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tare.samples.sql.column import functions_of, literal
from tare.samples.sql.table import fresh_name
from tare.stats.two_samples import Moments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tare.samples.read.result import Result
    from tare.samples.sql.table import Table

OF_FUNCTIONS = {"function": "string", "low_ns": "int64", "high_ns": "int64"}
"""Columns of `costs` that a layer without functions does not write."""
FIRST = 10_000
"""Requests of a lag plot, as in the published experiment."""
_STEPS = 24
"""Points of a percentile curve for each factor of ten of the tail."""
ABOVE = 10
"""A percentile is drawn where its run has at least so many requests above it."""
BINS = 72
"""Bins of a distribution on the first screen."""
DRAWN = 0.005, 0.95
"""A distribution is drawn between these quantiles: a longer tail would leave no room for it."""
POINTS = 240
"""Parts of the time under load in which throughput, latency and errors are counted."""
SHORTEST = 1e6
"""A part has at least this many nanoseconds."""
FEWEST = 10
"""Requests of a part at the edge of a run that has a throughput and a latency of its own."""

ConditionKey = tuple[str, str]
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


@dataclass(frozen=True)
class Density:
    """The share of requests between each two of `edges`, in nanoseconds; some lie beyond them."""

    edges: "NDArray[np.float64]"
    shares: "NDArray[np.float64]"


@dataclass(frozen=True)
class Moment:
    """What one run did in one part of the time; None where no request tells it."""

    at_ns: float
    """Its middle, since the Unix epoch."""
    rate: float | None
    """Successful requests per second under load."""
    median_ns: float | None
    slow_ns: float | None
    """The 99th percentile."""
    failed: int


@dataclass(frozen=True)
class Course:
    """The moments of each run in order of time, `width_ns` apart."""

    width_ns: float
    moments: Mapping[int, list[Moment]]


def kept(result: "Result", runs: Iterable[int], span: str) -> "Table | None":
    """Requests of `runs`: `run`, `span`, `place`, `start_ns`, `latency_ns`, the warm-up's too.

    Those are of one span, successful, in slices that were not left out. `places.settled` leaves
    out the warm-up as the verdict does.
    """
    from tare.samples.describe.steadiness import with_place

    samples = result.samples()
    if samples is None:
        return None
    # A place is counted among all requests, those that failed or were left out as well.
    placed = with_place(samples.filter(samples.span == span, samples.run.isin(list(runs))))
    chosen: Any = placed.filter(placed.ok, ~placed.left_out)
    order = chosen.start_ns if "start_ns" in chosen.columns else chosen.place
    table = chosen.select("run", "latency_ns", "place", start_ns=order)
    stored = result.backend.create_table(fresh_name("report_kept"), table, temp=True)
    return stored.mutate(span=literal(span))


def curves(samples: "Table") -> dict[int, Curve]:
    """The percentile curve of every run of `samples` (columns `run`, `latency_ns`)."""
    import numpy as np

    requests = samples.group_by("run").agg(requests=samples.count()).to_pyarrow().to_pylist()
    counts = {row["run"]: row["requests"] for row in requests}
    if not counts:
        return {}
    longest = np.log10(max(max(counts.values()) / ABOVE, 2))
    tail = np.linspace(0, longest, int(np.ceil(_STEPS * longest)) + 1)
    ranks = [float(p) for p in 1 - 10**-tail]
    table = samples.group_by("run").agg(latency=samples.latency_ns.quantile(ranks)).to_pyarrow()
    drawn = {}
    for run, latency in zip(*(table[name].to_pylist() for name in ("run", "latency")), strict=True):
        supported = counts[run] * 10**-tail >= min(ABOVE, counts[run])
        values = np.asarray(latency, dtype=np.float64)
        drawn[int(run)] = Curve(tail[supported], values[supported])
    return drawn


def middle(runs: Iterable[Curve]) -> Curve:
    """The median over runs at each percentile that all of them support."""
    import numpy as np

    several = list(runs)
    points = min(len(curve.tail) for curve in several)
    values = np.median([curve.latency_ns[:points] for curve in several], axis=0)
    return Curve(several[0].tail[:points], values)


def pooled(
    samples: "Table", places: Mapping[int, ConditionKey]
) -> dict[ConditionKey, tuple[Moments, float]]:
    """The requests of all runs of each environment and condition: moments in ns, and the median."""
    sql = functions_of(samples)
    keys = list(dict.fromkeys(places.values()))
    if not keys:
        return {}
    cases = [(samples.run == run, keys.index(place)) for run, place in places.items()]
    placed = samples.select(latency=samples.latency_ns.cast("float64"), place=sql.cases(*cases))
    table = placed.group_by("place").agg(
        size=placed.count(),
        mean=placed.latency.mean(),
        variance=placed.latency.var().fill_null(0),
        median=placed.latency.median(),
    )
    return {
        keys[row["place"]]: (Moments(row["size"], row["mean"], row["variance"]), row["median"])
        for row in table.to_pyarrow().to_pylist()
    }


def boxes(samples: "Table", places: Mapping[int, ConditionKey]) -> dict[ConditionKey, Box]:
    """One box for each environment and condition, over the requests of all of its runs.

    `places` says where each run belongs.
    """
    sql = functions_of(samples)

    named = ("low", "high", "requests", "beyond")
    keys = list(dict.fromkeys(places.values()))
    if not keys:
        return {}
    cases = [(samples.run == run, keys.index(place)) for run, place in places.items()]
    placed = samples.select("latency_ns", place=sql.cases(*cases))
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


def densities(samples: "Table", places: Mapping[int, ConditionKey]) -> dict[ConditionKey, Density]:
    """The requests of each environment and condition by latency, over all of its runs.

    All conditions of an environment have the same bins, equally wide on a logarithmic scale, from
    the least to the greatest of their DRAWN quantiles.
    """
    sql = functions_of(samples)
    import numpy as np

    keys = list(dict.fromkeys(places.values()))
    if not keys:
        return {}
    cases = [(samples.run == run, keys.index(place)) for run, place in places.items()]
    placed = samples.select("latency_ns", place=sql.cases(*cases))
    ends = placed.group_by("place").agg(ends=placed.latency_ns.quantile([*DRAWN]))
    limits: dict[str, list[float]] = {}
    for row in ends.to_pyarrow().to_pylist():
        limits.setdefault(keys[row["place"]][0], []).extend(float(end) for end in row["ends"])
    if not limits:
        return {}
    edges = {
        name: np.geomspace(max(min(of), 1.0) / 1.02, max(*of, 1.0) * 1.02, BINS + 1)
        for name, of in limits.items()
    }
    of_place = [(number, edges[name]) for number, (name, _) in enumerate(keys) if name in edges]
    low = sql.cases(*((placed.place == at, float(np.log(of[0]))) for at, of in of_place))
    step = sql.cases(*((placed.place == at, float(np.log(of[1] / of[0]))) for at, of in of_place))
    latency: Any = sql.greatest(placed.latency_ns, 1).cast("float64")
    placed = placed.mutate(bin=((latency.ln() - low) / step).floor().cast("int64"))
    table = placed.group_by("place", "bin").agg(requests=placed.count())
    counted: dict[ConditionKey, Any] = {}
    for row in table.to_pyarrow().to_pylist():
        of = counted.setdefault(keys[row["place"]], np.zeros(BINS + 1))
        # The last place is of all requests beyond either end.
        of[row["bin"] if 0 <= row["bin"] < BINS else BINS] += row["requests"]
    return {place: Density(edges[place[0]], of[:BINS] / of.sum()) for place, of in counted.items()}


def over_time(samples: "Table", runs: Iterable[int], span: str) -> Course | None:
    """Throughput, latency and failed requests of each run, in POINTS equal parts of all load.

    `samples` are as `Result.samples` has them: the warm-up and slices that were left out too. A
    rate is of the time under load, as that of the verdicts. None without start times.
    """
    sql = functions_of(samples)

    if "start_ns" not in samples.columns:
        return None
    chosen: Any = samples.filter(
        samples.span == span, samples.run.isin(list(runs)), samples.start_ns.notnull()
    )
    start = chosen.start_ns.cast("int64")
    ends = chosen.group_by("run").aggregate(first=start.min(), last=start.max())
    times = [(row["first"], row["last"]) for row in ends.to_pyarrow().to_pylist()]
    if not times:
        return None
    first, width = min(times)[0], max(covered(times) / POINTS, SHORTEST)
    timed = chosen.select(
        "run",
        "ok",
        "latency_ns",
        start=start,
        end=start + chosen.duration_ns.cast("int64").fill_null(0),
        bin=((start - first) / width).floor().cast("int64"),
        part=chosen.slice.cast("int64") if "slice" in chosen.columns else sql.literal(0),
    )
    parts = timed.group_by("run", "bin", "part").aggregate(
        answered=timed.ok.cast("int64").sum(), time=timed.end.max() - timed.start.min()
    )
    rates = parts.group_by("run", "bin").aggregate(
        answered=parts.answered.sum(), time=parts.time.sum()
    )
    latencies = timed.group_by("run", "bin").aggregate(
        latency=timed.latency_ns.quantile([0.5, 0.99], where=timed.ok),
        failed=(~timed.ok).cast("int64").sum(),
    )
    joined = rates.inner_join(latencies, ["run", "bin"]).order_by("run", "bin")
    moments: dict[int, list[Moment]] = {}
    for row in joined.to_pyarrow().to_pylist():
        median, slow = row["latency"] or (None, None)
        if row["time"] < width / 20 and row["answered"] + row["failed"] < FEWEST:
            continue  # the edge of a run
        moments.setdefault(int(row["run"]), []).append(
            Moment(
                at_ns=first + (row["bin"] + 0.5) * width,
                rate=1e9 * row["answered"] / row["time"] if row["time"] else None,
                median_ns=None if median is None else float(median),
                slow_ns=None if slow is None else float(slow),
                failed=int(row["failed"]),
            )
        )
    return Course(width, moments)


def covered(times: Iterable[tuple[int, int]]) -> int:
    """Nanoseconds that are in at least one of these times from a start to an end."""
    total, until = 0, 0
    for start, end in sorted(times):
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total


def first_requests(samples: "Table", run: int) -> "NDArray[np.float64]":
    """Latencies in nanoseconds of the first FIRST requests of one run, in their order."""
    import numpy as np

    chosen = samples.filter(samples.run == run).order_by("start_ns").limit(FIRST)
    return np.asarray(chosen.latency_ns.to_pyarrow(), dtype=np.float64)


def costs_of(costs: "Table", runs: Iterable[int]) -> "Table":
    """What the layers of these runs cost; columns that none of them has are null."""
    sql = functions_of(costs)

    absent = {name: type_ for name, type_ in OF_FUNCTIONS.items() if name not in costs.columns}
    rows = costs.filter(costs.run.isin(list(runs)))
    return rows.mutate(**{name: sql.null(type_) for name, type_ in absent.items()})


def own_times(costs: "Table") -> "dict[Function, NDArray[np.float64]]":
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


def counters(costs: "Table") -> dict[tuple[Function, str], int]:
    """Counters of the layers by function and metric, over all runs."""
    rows = costs.filter(costs.metric != "own_time")
    keys = [*Function._fields, "metric"]
    table = rows.group_by(keys).agg(total=rows["count"].sum()).order_by(keys)
    return {(_function(row), row["metric"]): row["total"] for row in table.to_pyarrow().to_pylist()}


def _function(row: Mapping[str, Any]) -> Function:
    return Function(*(str(row[name] or "") for name in Function._fields))
