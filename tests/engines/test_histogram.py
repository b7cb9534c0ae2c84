# SPDX-License-Identifier: Apache-2.0
"""Histograms: the bins of crates/hist, adding up, and how far from exact their answers are."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.samples.engines import Description, describe, describe_histogram, histogram
from tare.samples.engines.histogram import bin_of, bounds, merged
from tare.samples.sql.engine import connect

AT = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)


def literal(value: int) -> int:
    """`index` of crates/hist."""
    if value < 512:
        return max(value, 0)
    shift = value.bit_length() - 1 - 9
    return (shift << 9) + (value >> shift)


def test_bins_are_those_of_the_native_parts() -> None:
    values = {*range(-2, 5_000)}
    for power in range(10, 62):
        values |= {2**power + step for step in (-1, 0, 1)} | {3 * 2 ** (power - 1), 2**power - 7}
    table = connect().create_table("counted", pa.table({"value": sorted(values)}))
    found = table.select("value", bin=bin_of(table.value)).to_pyarrow().to_pydict()
    assert found["bin"] == [literal(value) for value in found["value"]]
    low, high = bounds(np.array(found["bin"]))
    inside = (low <= np.maximum(found["value"], 0)) & (np.array(found["value"]) < high)
    assert inside.all()
    assert (high - low <= np.maximum(low / 512, 1)).all()


def samples(seed: int, requests: int = 30_000) -> pa.Table:
    """Three runs, one in 50 requests failed, half of those without an answer."""
    generator = np.random.default_rng(seed)
    run = generator.integers(1, 4, requests)
    latency = generator.lognormal(12 + run / 50, 0.4, requests).astype(np.int64)
    ok = generator.random(requests) > 0.02
    columns = {"run": run, "span": np.repeat("a", requests), "ok": ok}
    unanswered = ~ok & (run == 2)
    return pa.table(columns | {"latency_ns": pa.array(latency, mask=unanswered)})


def described(table: pa.Table) -> tuple[Description, pa.Table]:
    """Exactly, and the histogram."""
    backend = connect()
    stored = backend.create_table("samples", table)
    return describe(stored, AT, exact=True), histogram(stored).to_pyarrow()


def test_a_histogram_keeps_to_its_bounds() -> None:
    exact, rows = described(samples(4))
    found = describe_histogram(rows, AT)
    assert exact.exact
    assert not found.exact
    assert found.groups.keys() == exact.groups.keys()
    for group, expected in exact.groups.items():
        approximate = found.groups[group]
        assert (approximate.requests, approximate.errors, approximate.mean) == (
            expected.requests, expected.errors, expected.mean
        )  # fmt: skip
        for at in AT:
            assert approximate.quantiles[at] == pytest.approx(expected.quantiles[at], rel=0.002)
        assert approximate.quantiles[1.0] <= expected.quantiles[1.0]
    apart, expected_apart = found.distances["a"], exact.distances["a"]
    assert 0 < found.ks_error["a"] < 0.02
    assert (np.abs(apart.of["ks"] - expected_apart.of["ks"]) <= found.ks_error["a"]).all()
    for kind in ("ad", "cvm", "w1"):
        assert apart.of[kind] == pytest.approx(expected_apart.of[kind], rel=0.02)


def test_few_requests_far_apart_keep_to_the_bounds_too() -> None:
    """A rare span: p99 of 40 requests is between two ranks, and one run has but two."""
    rare = np.append(np.linspace(1e6, 1.2e6, 38), [3e6, 3e7]).astype(np.int64)
    many = np.random.default_rng(7).lognormal(14, 0.5, 8_000).astype(np.int64)
    parts = [("retry", 1, rare), ("retry", 2, rare[-2:]), ("a", 1, many[:4_000]), ("a", 2, many)]
    tables = [
        pa.table({"run": [run] * of.size, "span": [span] * of.size, "latency_ns": of})
        for span, run, of in parts
    ]
    table = pa.concat_tables(tables)
    exact, rows = described(table.append_column("ok", pa.repeat(True, table.num_rows)))
    found = describe_histogram(rows, AT)
    for group, expected in exact.groups.items():
        assert found.groups[group].quantiles == pytest.approx(expected.quantiles, rel=0.002)
    assert found.ks_error["retry"] == 0.5
    assert found.ks_error["a"] < 0.02


def test_histograms_add_up(tmp_path: Path) -> None:
    """Two that were stored apart are one of all their requests."""
    whole = samples(5)
    for name, part in (("a", whole.slice(0, 9_000)), ("b", whole.slice(9_000))):
        pq.write_table(described(part)[1], tmp_path / f"{name}.parquet")
    stored = pq.read_table(tmp_path)
    expected = described(whole)[1]
    assert merged(stored).equals(merged(expected))
    assert describe_histogram(stored, AT).groups == describe_histogram(expected, AT).groups


def test_runs_without_a_success_have_errors_alone() -> None:
    columns = {"run": [1, 1], "span": ["a", "a"], "latency_ns": [5, None], "ok": [False, False]}
    found = describe_histogram(described(pa.table(columns))[1], AT)
    assert found.groups[1, "a"].errors == 2
    assert found.groups[1, "a"].mean is None
    assert (found.distances, found.ks_error) == ({}, {})


def test_many_samples_are_binned_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.samples.engines.describing.EXACT_ROWS", {"duckdb": 999})
    stored = connect().create_table("samples", samples(6, 1_000))
    assert not describe(stored, AT).exact
    assert describe(stored, AT, exact=True).exact
    assert describe(stored.limit(999), AT).exact
