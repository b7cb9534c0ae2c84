# SPDX-License-Identifier: Apache-2.0
"""Requests far from the others, against NumPy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tare.samples.counted import Histogram, points
from tare.samples.engine import connect
from tare.samples.far import TIMES, far
from tare.samples.model import Part


def expected(values: npt.NDArray[Any]) -> list[Part]:
    logs = np.log10(values[values > 0])
    middle, limit = np.log10(round(np.median(values))), np.log10(TIMES)
    parts = (logs[logs < middle - limit], logs[logs > middle + limit])
    return [Part(one.size, one.mean(), one.std()) for one in parts if one.size]


def same(found: tuple[Part, ...], values: npt.NDArray[Any]) -> bool:
    pairs = zip(found, expected(values), strict=True)
    return all(
        one.requests == two.requests
        and one.level == pytest.approx(two.level)
        and one.spread == pytest.approx(two.spread, abs=1e-9)
        for one, two in pairs
    )


def test_of_each_run_and_span_by_its_own_median() -> None:
    generator = np.random.default_rng(3)
    runs = {}
    for run in (1, 2):
        for span, level in (("request", 1e6 * run), ("pay", 1e3)):
            # The level of one span is far from that of the other; the least are 0.
            runs[run, span] = np.floor(level * generator.lognormal(0, 2, 500)).astype(np.int64)
    table = pa.table(
        {
            "run": np.repeat([run for run, _ in runs], 500),
            "span": np.repeat([span for _, span in runs], 500),
            "latency_ns": np.concatenate([*runs.values()]),
            "ok": np.ones(2_000, dtype=bool),
        }
    )
    medians = {group: float(np.median(values)) for group, values in runs.items()}
    found = far(connect().create_table("samples", table), medians)
    assert found.keys() == runs.keys()
    assert all(same(found[group], values) for group, values in runs.items())
    assert {len(parts) for parts in found.values()} == {2}
    only = far(connect().create_table("samples", table), {(2, "pay"): medians[2, "pay"]})
    assert only == {(2, "pay"): found[2, "pay"]}


def test_failed_requests_are_none() -> None:
    table = pa.table(
        {"run": [1, 1], "span": ["a", "a"], "latency_ns": [100, 100_000], "ok": [True, False]}
    )
    assert far(connect().create_table("samples", table), {(1, "a"): 100.0}) == {}


def test_of_counts() -> None:
    values = np.array([3.0, 900.0, 1_000.0, 1_100.0, 50_000.0, 70_000.0])
    requests = np.array([2, 40, 40, 40, 5, 1])
    assert same(Histogram(**points(values, requests)).far(), np.repeat(values, requests))
    assert Histogram(**points([5.0], [0])).far() == ()
