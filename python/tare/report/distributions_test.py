# SPDX-License-Identifier: Apache-2.0
"""What the figures show against NumPy and Matplotlib on the same values."""

from typing import TYPE_CHECKING

import ibis
import numpy as np
import pytest
from matplotlib.cbook import boxplot_stats

from tare.report import distributions
from tare.report.distributions import ABOVE, Curve

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
        (expected,) = boxplot_stats(values, whis=1.5)
        assert box.requests == len(values)
        assert box.beyond == len(expected["fliers"])
        assert (box.low, box.high) == (expected["whislo"], expected["whishi"])
        quarters = (expected["q1"], expected["med"], expected["q3"])
        assert (box.first, box.median, box.third) == pytest.approx(quarters)


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
