# SPDX-License-Identifier: Apache-2.0
"""What the figures show against NumPy on the same values."""

from typing import TYPE_CHECKING

import ibis
import numpy as np
import pytest

from tare.report.result import distributions
from tare.report.result.distributions import ABOVE, Curve

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from numpy.typing import NDArray

RUNS = {1: ("host", "plain"), 2: ("host", "hook"), 3: ("host", "plain")}
SIZES = {1: 5_000, 2: 700, 3: 12}


@pytest.fixture
def latencies() -> "dict[int, NDArray[np.int64]]":
    random = np.random.default_rng(1)
    return {run: random.lognormal(11, 0.5, n).astype(np.int64) for run, n in SIZES.items()}


@pytest.fixture
def samples(latencies: "dict[int, NDArray[np.int64]]") -> "ir.Table":
    columns = {
        "run": np.repeat(list(SIZES), list(SIZES.values())),
        "latency_ns": np.concatenate(list(latencies.values())),
        "start_ns": np.concatenate([np.arange(n)[::-1] for n in SIZES.values()]),
    }
    backend = ibis.duckdb.connect()
    return backend.create_table("samples", ibis.memtable(columns))


def test_curves(samples: "ir.Table", latencies: "dict[int, NDArray[np.int64]]") -> None:
    curves = distributions.curves(samples)
    assert set(curves) == set(RUNS)
    for run, curve in curves.items():
        expected = np.quantile(latencies[run], 1 - 10**-curve.tail)
        np.testing.assert_allclose(curve.latency_ns, expected, rtol=1e-9)
        above = SIZES[run] * 10 ** -curve.tail[-1]
        assert above >= ABOVE - 1e-6
    assert curves[1].tail[-1] > curves[2].tail[-1] > curves[3].tail[-1]


def test_middle_is_the_median_where_all_runs_reach() -> None:
    tail = np.array([0.0, 1.0, 2.0])
    curves = [Curve(tail[:n], np.full(n, level)) for n, level in ((3, 1.0), (3, 5.0), (2, 2.0))]
    middle = distributions.middle(curves)
    assert middle.tail.tolist() == [0.0, 1.0]
    assert middle.latency_ns.tolist() == [2.0, 2.0]


def test_boxes(samples: "ir.Table", latencies: "dict[int, NDArray[np.int64]]") -> None:
    boxes = distributions.boxes(samples, RUNS)
    assert set(boxes) == set(RUNS.values())
    for place, box in boxes.items():
        values = np.concatenate([latencies[run] for run, of in RUNS.items() if of == place])
        first, median, third = np.percentile(values, [25, 50, 75])
        reach = 1.5 * (third - first)
        within = [value for value in values if first - reach <= value <= third + reach]
        assert box.requests == len(values)
        assert box.beyond == len(values) - len(within)
        assert (box.low, box.high) == (min(within), max(within))
        assert (box.first, box.median, box.third) == pytest.approx((first, median, third))


def test_first_requests(samples: "ir.Table", latencies: "dict[int, NDArray[np.int64]]") -> None:
    found = distributions.first_requests(samples, 2)
    assert found.tolist() == latencies[2][::-1].tolist()


def test_bins() -> None:
    bins = np.array([[0, 9, 1], [10, 19, 2], [20, 39, 1]], dtype=np.float64)
    assert distributions.binned_quantile(bins, 0.25) == 4.5
    assert distributions.binned_quantile(bins, 0.5) == 14.5
    assert distributions.binned_quantile(bins, 1.0) == 29.5
    assert distributions.binned_sum(bins) == 4.5 + 2 * 14.5 + 29.5


def test_a_layer_without_functions_has_counters_alone() -> None:
    columns = {
        "environment": ["host"] * 3,
        "condition": ["log"] * 3,
        "run": [2, 2, 9],
        "layer": ["log"] * 3,
        "metric": ["events", "bytes_written", "events"],
        "count": [700, 35, 1],
    }
    costs = distributions.costs_of(ibis.memtable(columns), [1, 2])
    assert distributions.own_times(costs) == {}
    whole = distributions.Function("log", "host", "log", "")
    assert distributions.counters(costs) == {(whole, "events"): 700, (whole, "bytes_written"): 35}


def test_densities_have_all_requests_but_the_tails() -> None:
    places = {1: ("host", "plain"), 2: ("host", "hook")}
    latencies = [*range(10_000, 20_000, 10), *range(20_000, 40_000, 20)]
    rows = [{"run": 1 + number // 1_000, "latency_ns": ns} for number, ns in enumerate(latencies)]
    found = distributions.densities(ibis.memtable(rows), places)
    first, second = found["host", "plain"], found["host", "hook"]
    np.testing.assert_array_equal(first.edges, second.edges)
    assert first.edges[0] < 10_050
    assert 39_000 < first.edges[-1] < 40_000
    assert first.shares.sum() == pytest.approx(1, abs=0.01)
    assert second.shares.sum() == pytest.approx((first.edges[-1] - 20_000) / 20_000, abs=0.001)
    assert first.shares[first.edges[:-1] > 20_000].sum() == 0


def test_over_time_counts_by_time_under_load() -> None:
    """Two runs of a second that take turns of 10 ms: 1,000 requests/s, one of which fails."""
    rows = [
        {
            "run": 1 + turn % 2,
            "span": "request",
            "slice": turn,
            "start_ns": turn * 10_000_000 + number * 1_000_000,
            "duration_ns": 1_000_000,
            "latency_ns": 1_000_000,
            "ok": (turn, number) != (100, 0),
        }
        for turn in range(200)
        for number in range(10)
    ]
    course = distributions.over_time(ibis.memtable(rows), [1, 2], "request")
    assert course is not None
    assert set(course.moments) == {1, 2}
    rates = [moment.rate for moment in course.moments[2]]
    assert rates == pytest.approx([1_000] * len(rates))
    assert {moment.median_ns for moment in course.moments[1]} == {1_000_000}
    assert [sum(moment.failed for moment in course.moments[run]) for run in (1, 2)] == [1, 0]
    timeless = ibis.memtable([{"run": 1, "span": "request"}])
    assert distributions.over_time(timeless, [1], "request") is None
