# SPDX-License-Identifier: Apache-2.0
"""DuckDB's descriptions of samples against NumPy's and SciPy's of the same."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tare.errors import InputError
from tare.samples.engines import Extent, describe, describe_each, exact
from tare.samples.engines.cut_bitmask import WarmUpEnds
from tare.samples.sql.engine import connect
from tare.stats.distances import between, kinds_from

AT = (0.1, 0.5, 0.9, 0.99)


def samples(seed: int, requests: int) -> pa.Table:
    """Spans of runs with ties, failures, failures without an answer, and a run of those alone."""
    generator = np.random.default_rng(seed)
    run = generator.choice([3, 4, 17, 90], requests)
    latency = generator.lognormal(10 + run / 200, 0.5, requests).astype(np.int64)
    ties = generator.random(requests) < 0.3
    latency[ties] = latency[ties] // 1000 * 1000
    ok = (generator.random(requests) > 0.05) & (run != 90)
    unanswered = ~ok & (generator.random(requests) < 0.5)
    return pa.table(
        {
            "run": pa.array(run, pa.int32()),
            "span": generator.choice(["order", "Order", "payment"], requests),
            "latency_ns": pa.array(latency, mask=unanswered),
            "ok": ok,
        }
    )


@pytest.mark.parametrize(("few", "rows"), [(exact.FEW, exact.ROWS), (0, exact.ROWS), (0, 37)])
def test_a_description_is_what_numpy_computes(
    few: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "FEW", few)
    monkeypatch.setattr(exact, "ROWS", rows)
    table = samples(1, 4_000)
    found = describe(connect().create_table("samples", table), AT)
    assert {span for _, span in found.groups} == {"order", "Order", "payment"}
    assert [*found.distances] == ["Order", "order", "payment"]
    for (run, span), group in found.groups.items():
        ok, latency = of(table, run, span)
        assert (group.requests, group.errors) == (ok.size, int((~ok).sum()))
        if run == 90:
            assert (group.mean, group.quantiles) == (None, {})
            continue
        assert group.mean == pytest.approx(latency[ok].mean(), rel=1e-14)
        expected = np.quantile(latency[ok], AT, method="median_unbiased").tolist()
        assert [*group.quantiles.values()] == pytest.approx(expected, rel=1e-12)
    for span, apart in found.distances.items():
        assert apart.runs == (3, 4, 17)
        answered = [latency[ok] for ok, latency in (of(table, run, span) for run in apart.runs)]
        kinds = kinds_from(min(latency.min() for latency in answered))
        expected_of = between(answered, kinds)
        assert apart.of.keys() == expected_of.keys()
        for kind in kinds:
            assert apart.of[kind] == pytest.approx(expected_of[kind], rel=1e-12)


def of(table: pa.Table, run: int, span: str) -> tuple[Any, Any]:
    """`ok` and latencies of one span of one run."""
    here = (table["run"].to_numpy() == run) & (np.array(table["span"].to_pylist()) == span)
    ok = table["ok"].to_numpy()[here]
    return ok, table["latency_ns"].to_numpy()[here]


@pytest.mark.parametrize("factor", [1, 1_000_000])
def test_memory_and_engine_sort_alike(factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "FEW", 0)
    monkeypatch.setattr(exact, "ROWS", 1_000)
    table = samples(6, 9_000).drop(["span"]).append_column("span", pa.repeat("order", 9_000))
    table = table.set_column(1, "latency_ns", pc.multiply(table["latency_ns"], factor))
    found = []
    for held in (exact.HELD, 0):
        monkeypatch.setattr(exact, "HELD", held)
        found.append(describe(connect().create_table("samples", table), AT))
    here, there = found
    assert here.groups == there.groups
    for kind, matrix in here.distances["order"].of.items():
        assert np.array_equal(matrix, there.distances["order"].of[kind])


@pytest.mark.parametrize("factor", [1, 200_000])
@pytest.mark.parametrize("gaps", [True, False])
def test_a_known_extent_changes_no_description(
    factor: int, gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "FEW", 0)
    monkeypatch.setattr(exact, "ROWS", 1_000)
    rows = 9_000
    table = samples(7, rows).drop(["span"]).append_column("span", pa.repeat("order", rows))
    latency = table["latency_ns"].to_numpy(zero_copy_only=False) * factor
    latency[:50] = np.nan  # also of requests that are ok
    run = table["run"].to_numpy()
    runs = [3, 4, 17, 90] if gaps else [1, 2, 3, 4]
    run = np.array(runs, np.int32)[np.searchsorted([3, 4, 17, 90], run)]
    latency[run == runs[3]] = np.nan
    table = table.set_column(0, "run", pa.array(run))
    table = table.set_column(1, "latency_ns", pa.array(latency, from_pandas=True).cast("int64"))
    table = table.append_column("place", pa.array(range(rows), pa.int64()))
    begins = [{(number, "order"): cut for number in runs} for cut in (100, 200, rows // 2)]
    known = latency[table["ok"].to_numpy() & np.isfinite(latency)]
    extent = Extent("order", runs, rows, int(known.min()), int(known.max()))
    stored = connect().create_table("samples", table)
    held = []

    def noted(*args: Any) -> exact.Held | None:
        held.append(exact.hold(*args))
        return held[-1]

    monkeypatch.setattr("tare.samples.engines.describing.hold", noted)
    there = describe_each(stored, begins, AT)
    here = describe_each(stored, begins, AT, extent=extent)
    assert len(held) == 1
    assert held[0] is not None
    for own, engine in zip(here, there, strict=True):
        assert own.groups == engine.groups
        assert own.groups[runs[3], "order"].mean is None
    assert [description.distances for description in (*here[1:], *there[1:])] == [{}] * 4
    own, engine = here[0], there[0]
    assert own.distances["order"].runs == engine.distances["order"].runs == tuple(runs[:3])
    for kind, matrix in engine.distances["order"].of.items():
        assert np.array_equal(own.distances["order"].of[kind], matrix)


def test_requests_that_need_more_memory_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "FEW", 0)
    marked = WarmUpEnds([{}]).marked(connect().create_table("samples", samples(8, 100)))
    extent = Extent("order", [3, 90], 100, 1, 10**6)
    assert exact.hold(marked, extent, WarmUpEnds([{}])) is not None
    assert exact.hold(marked, replace(extent, rows=exact.HELD // 4 + 1), WarmUpEnds([{}])) is None
    assert exact.hold(marked, replace(extent, most=10**11), WarmUpEnds([{}])) is None
    assert exact.hold(marked, replace(extent, runs=[3, 10**6]), WarmUpEnds([{}])) is None


def test_many_spans_are_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = exact._sorted

    def noted(*words: Any) -> Any:
        asked.append(words)
        return plain(*words)

    monkeypatch.setattr(exact, "_sorted", noted)
    spans, runs = 300, 4
    numbers = np.arange(spans * runs * 3)
    columns = {
        "run": numbers % runs,
        "span": [f"span {number // runs % spans}" for number in numbers],
        "latency_ns": numbers + 1_000,
        "ok": np.ones(numbers.size, dtype=bool),
    }
    found = describe(connect().create_table("samples", pa.table(columns)), AT)
    assert (len(asked), len(found.groups), len(found.distances)) == (1, spans * runs, spans)


def test_tables_in_memory_may_be_joined() -> None:
    """As slices that are left out are."""
    backend = connect()
    table = backend.create_table("samples", samples(2, 500))
    hit = pa.table({"run": pa.array([4], pa.int32()), "hit": [True]})
    joined = table.left_join(backend.create_table("hit", hit), "run").filter(
        lambda t: t.hit.isnull()
    )
    assert describe(joined, AT).distances["order"].runs == (3, 17)


def test_no_samples_are_no_groups() -> None:
    found = describe(connect().create_table("samples", samples(3, 0)), AT)
    assert (found.groups, found.distances) == ({}, {})


def test_latencies_that_no_request_has_are_named() -> None:
    columns = {"run": [1, 2], "span": ["a", "a"], "latency_ns": [0, 2**62], "ok": [True, True]}
    with pytest.raises(InputError, match="latencies from 0 to 4611686018427387904 ns"):
        describe(connect().create_table("samples", pa.table(columns)), AT)
