# SPDX-License-Identifier: Apache-2.0
"""Batch means in the engine against NumPy, and the classes of recorded and published runs."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from scipy.signal import lfilter

from tare.samples.describe.steadiness import (
    batch_means,
    classified,
    courses_of,
    taking_turns,
    with_place,
)
from tare.samples.manifest import Manifest
from tare.samples.sql.column import literal, row_number
from tare.samples.sql.engine import connect
from tare.stats.effective_size import effective_size

DATA = Path(__file__).parents[4] / "tests" / "data" / "hook-latency"


def table(columns: dict[str, Any]) -> Any:
    return connect().create_table("samples", pa.table(columns))


def sizes(samples: Any) -> dict[tuple[int, str], int]:
    """Places of each run and span."""
    rows = samples.group_by(["run", "span"]).aggregate(places=samples.place.max() + 1)
    return {(row["run"], row["span"]): row["places"] for row in rows.to_pyarrow().to_pylist()}


def one_run(latency: Any, run: int = 1) -> dict[str, Any]:
    size = len(latency)
    return {
        "run": np.full(size, run),
        "span": ["request"] * size,
        "place": np.arange(size),
        "latency_ns": np.asarray(latency, dtype=np.int64),
        "ok": np.ones(size, dtype=bool),
    }


@pytest.mark.parametrize("size", [4, 57, 4_999, 5_000, 12_345])
def test_batches_are_means_of_logs_of_equal_parts(size: int) -> None:
    generator = np.random.default_rng(size)
    columns = one_run(generator.integers(30_000, 30_000_000, size))
    order = generator.permutation(size)
    shuffled = {name: np.asarray(column)[order] for name, column in columns.items()}
    samples = table(shuffled)
    found = batch_means(samples, sizes(samples)).order_by("place").to_pyarrow()
    count = min(1_000, max(size // 5, 1))
    edges = [-(-batch * size // count) for batch in range(count + 1)]
    logs = np.log(columns["latency_ns"])
    expected = [logs[a:b].mean() for a, b in pairwise(edges)]
    assert found["place"].to_pylist() == edges[:-1]
    np.testing.assert_allclose(found["level"].to_numpy(), expected, rtol=1e-12)
    spread = [logs[a:b].var() for a, b in pairwise(edges)]
    np.testing.assert_allclose(found["spread"].to_numpy(), spread, atol=1e-12)


def test_failed_and_missing_requests_are_in_no_mean() -> None:
    columns = one_run(np.full(500, 1_000))
    columns["latency_ns"][0:2] = 9_000_000
    columns["ok"][0:2] = False
    columns["ok"][5:10] = False
    columns["latency_ns"][10] = 0
    kept = np.arange(500) != 11
    samples = table({k: np.asarray(v)[kept] for k, v in columns.items()})
    found = batch_means(samples, sizes(samples))
    rows = found.order_by("place").to_pyarrow()
    # The second batch is gone; the third stands on the three requests that have a latency.
    assert rows["place"].to_pylist() == [0, *range(10, 500, 5)]
    np.testing.assert_allclose(rows["level"].to_numpy(), np.log(1_000))


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_correlated_requests_are_worth_what_their_autocorrelation_says(correlation: float) -> None:
    size = 100_000
    fresh = np.random.default_rng(7).normal(size=size)
    noise = lfilter([(1 - correlation**2) ** 0.5], [1, -correlation], fresh)
    columns = one_run(np.exp(11 + 0.1 * noise))
    samples = table(columns)
    (found,) = classified(courses_of(samples, sizes(samples))).values()
    literal = effective_size(np.log(columns["latency_ns"]))
    assert found.worth == pytest.approx(literal, rel=0.25)
    assert found.worth == pytest.approx(size * (1 - correlation) / (1 + correlation), rel=0.25)


def test_runs_and_spans_go_their_own_ways() -> None:
    generator = np.random.default_rng(1)
    steady = generator.lognormal(11, 0.1, 20_000)
    warm = steady * np.where(np.arange(20_000) < 4_000, 1.5, 1)
    parts = [one_run(steady, 1), one_run(warm, 2), one_run(steady[:200], 3)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    samples = table(columns)
    found = classified(courses_of(samples, sizes(samples)))
    assert {key: steadiness.kind for key, steadiness in found.items()} == {
        (1, "request"): "flat",
        (2, "request"): "warm-up",
    }
    assert found[2, "request"].cut == pytest.approx(4_000, abs=400)


def test_places_are_the_load_s_numbers_or_the_order_of_starts() -> None:
    samples = ibis.memtable(
        pa.table(
            {
                "run": [1] * 5,
                "span": ["request", "request", "query", "query", "query"],
                "seq": pa.array([7, 3, None, None, None], pa.int64()),
                "start_ns": [1, 2, 30, 10, 20],
            }
        )
    )
    rows = with_place(samples).order_by("start_ns").to_pyarrow()
    assert rows["place"].to_pylist() == [7, 3, 0, 1, 2]
    rows = with_place(samples.drop("seq")).order_by("start_ns").to_pyarrow()
    assert rows["place"].to_pylist() == [0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    ("name", "kind", "cut"),
    [
        ("docker.plain", "no steady state", None),
        ("docker.hook", "warm-up", 12_000),
        ("kind.plain", "warm-up", 15_000),
        ("eks-pod.plain", "warm-up", 4_500),
    ],
)
def test_published_runs_are_told_apart(name: str, kind: str, cut: int | None) -> None:
    raw = connect().read_parquet(str(DATA / f"{name}.parquet"))
    samples = raw.select(
        run=literal(1),
        span=literal("request"),
        place=row_number().over(order_by="start_ns"),
        latency_ns=raw.duration_ns,
        ok=literal(True),
    )
    found = classified(courses_of(samples, sizes(samples)))[1, "request"]
    assert found.kind == kind
    assert found.cut == (None if cut is None else pytest.approx(cut, abs=1_000))


def test_runs_that_take_turns_are_judged_without_the_machine_s_course() -> None:
    generator = np.random.default_rng(2)
    part = np.arange(10_000) // 1_000
    parts, blocks = [], []
    # In each block the machine is slow at another part of the run; the third condition warms up.
    for block in range(8):
        machine = np.where(part == block + 1, 1.3, 1) * np.where(
            part == (block + 4) % 9 + 1, 1.3, 1
        )
        blocks.append([3 * block + 1, 3 * block + 2, 3 * block + 3])
        for run in blocks[-1]:
            own = np.where((run % 3 == 0) & (part < 2), 1.5, 1)
            latency = generator.lognormal(11, 0.1, part.size) * machine * own
            parts.append(one_run(latency, run))
    columns = {name: np.concatenate([rows[name] for rows in parts]) for name in parts[0]}
    samples = table(columns)
    alone = [
        steadiness.kind for steadiness in classified(courses_of(samples, sizes(samples))).values()
    ]
    assert alone.count("no steady state") > 8
    found = classified(courses_of(samples, sizes(samples), {"host": blocks}))
    assert {run: steadiness.kind for (run, _), steadiness in found.items()} == {
        run: "flat" if run % 3 else "warm-up" for run in range(1, 25)
    }


def test_only_valid_runs_of_interleaved_blocks_take_turns() -> None:
    runs = [
        {"environment": "host", "block": block, "run": run, "valid": run != 4, "condition": name}
        for run, (block, name) in enumerate(product([1, 2], "ab"), start=1)
    ]
    declared = {"design": "interleaved", "runs": runs, "baseline": "a", "budget": 0.03}
    manifest = Manifest.model_validate(declared)
    assert taking_turns(manifest) == {"host": [[1, 2], [3]]}
    assert taking_turns(manifest.model_copy(update={"design": "blocked"})) == {}


def test_requests_that_were_only_counted_have_an_order_by_chance() -> None:
    rising = pa.table({"run": [1] * 1_000, "span": ["a"] * 1_000, "duration_ns": range(1_000)})
    rows = with_place(connect().create_table("samples", rising)).to_pyarrow()
    place, duration = rows["place"].to_numpy(), rows["duration_ns"].to_numpy()
    assert sorted(place.tolist()) == [*range(1_000)]
    assert abs(np.corrcoef(place, duration)[0, 1]) < 0.1
