# SPDX-License-Identifier: Apache-2.0
"""Samples that are read into memory once say what the engine says of them."""

from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tare.samples.describe.steadiness import read_courses
from tare.samples.describe.warm_up_cuts import CutSummaries, CutSummary, look
from tare.samples.engines import exact
from tare.samples.engines.in_memory import load
from tare.samples.model import SpanKey
from tare.samples.sql.engine import connect
from tare.samples.sql.table import Table

RUNS, PLACES = 4, 6_000
CONDITIONS = {run: ("host", "ab"[run % 2]) for run in range(1, RUNS + 1)}
TWO_HOSTS = {run: (f"host{run // 3}", "ab"[run % 2]) for run in range(1, RUNS + 1)}


def columns(seed: int, slow: float = 1.0) -> dict[str, npt.NDArray[Any]]:
    """Runs with a warm-up, requests of no time, and failures with and without a latency."""
    generator = np.random.default_rng(seed)
    place = np.tile(np.arange(PLACES), RUNS)
    run = np.repeat(np.arange(1, RUNS + 1), PLACES)
    warming = 1 + 2 * np.exp(-place / 150)
    drawn = generator.lognormal(11 + run / 100, 0.4, run.size) * warming * slow
    drawn[generator.random(run.size) < 0.001] = 0
    ok = generator.random(run.size) > 0.03
    answered = ok | (generator.random(run.size) < 0.5)
    return {
        "run": run,
        "place": place,
        "latency_ns": drawn.astype(np.int64),
        "ok": ok,
        "answered": answered,
    }


def stored(found: Mapping[str, npt.NDArray[Any]], spans: Any = "request") -> Table:
    size = found["run"].size
    table = {
        "run": pa.array(found["run"], pa.int32()),
        "span": pa.array([spans] * size if isinstance(spans, str) else spans),
        "place": found["place"],
        "latency_ns": pa.array(found["latency_ns"], mask=~found["answered"]),
        "ok": found["ok"],
    }
    return connect().create_table("samples", pa.table(table))


def rearranged(kind: str) -> dict[str, npt.NDArray[Any]]:
    """Samples whose rows, latencies or runs are as `kind` says."""
    found = columns(5, slow=1e5 if kind == "slow" else 1.0)
    latency = found["latency_ns"]
    if kind == "steps":
        step = np.array([1, 10, 1_000, 100])[found["run"] - 1]
        found["latency_ns"] = latency // step * step
    if kind == "ticks":
        even = found["run"] % 2 == 0
        found["latency_ns"] = np.where(even, latency // 437 * 437, latency)
    if kind == "slowest last":
        # The first latencies fit into 32 bits, and no later ones.
        found["latency_ns"] = np.where(found["run"] == RUNS, latency * 99_991, latency)
    if kind == "no latency":
        found["answered"] &= found["place"] % 50 != 7
    if kind == "a run of failures":
        found["ok"] &= found["run"] != 3
    rows = np.arange(latency.size)
    if kind == "gaps":
        rows = rows[(rows // 40) % 5 != 0]
    if kind == "shuffled in a run":
        rows = np.argsort(found["run"] * 10.0 + np.random.default_rng(2).random(rows.size) / 10)
    if kind == "in turns":
        rows = np.lexsort((found["place"], found["run"], found["place"] // 1_500))
    return {name: column[rows] for name, column in found.items()}


KINDS = (
    "as recorded",
    "steps",
    "ticks",
    "slow",
    "slowest last",
    "no latency",
    "a run of failures",
    "gaps",
    "shuffled in a run",
    "in turns",
)


@pytest.mark.parametrize("conditions", [CONDITIONS, TWO_HOSTS])
@pytest.mark.parametrize("kind", KINDS)
def test_memory_says_what_the_engine_says(
    kind: str, conditions: Mapping[int, SpanKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = stored(rearranged(kind))
    assert load(samples) is None
    there = look(samples, conditions)
    monkeypatch.setattr(exact, "FEW", 1_000)
    monkeypatch.setattr(exact, "ROWS", 4_096)
    asked = Mock(wraps=load)
    monkeypatch.setattr("tare.samples.describe.warm_up_cuts.load", asked)
    here = look(samples, conditions)
    asked.assert_called_once()
    assert load(samples) is not None
    same(here, there)
    assert bool(here.steps) == (kind in {"steps", "ticks"})


def same(here: CutSummaries, there: CutSummaries) -> None:
    for name in ("sizes", "cuts", "first", "steps", "zeros", "whole"):
        assert getattr(here, name) == getattr(there, name), name
    assert here.steadiness.keys() == there.steadiness.keys()
    assert [trend.kind for trend in here.steadiness.values()] == [
        trend.kind for trend in there.steadiness.values()
    ]
    assert here.others.keys() == there.others.keys()
    pairs = [(here.at_cut, there.at_cut), *((here.others[n], there.others[n]) for n in here.others)]
    for here_look, there_look in pairs:
        same_look(here_look, there_look)


def same_look(here: CutSummary, there: CutSummary) -> None:
    assert here.groups == there.groups
    assert here.drifts == pytest.approx(there.drifts, rel=1e-6)
    assert here.distances.keys() == there.distances.keys()
    for place, apart in here.distances.items():
        assert apart.runs == there.distances[place].runs
        for name, matrix in apart.of.items():
            np.testing.assert_array_equal(matrix, there.distances[place].of[name])


@pytest.mark.parametrize("kind", KINDS)
def test_batches_in_memory_are_those_of_the_engine(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tare.samples.describe.steadiness import courses_in_memory

    samples = stored(rearranged(kind))
    monkeypatch.setattr(exact, "FEW", 0)
    monkeypatch.setattr(exact, "ROWS", 2_048)
    loaded = load(samples)
    assert loaded is not None
    sizes = {(run, "request"): loaded_run.places for run, loaded_run in loaded.runs.items()}
    here, there = courses_in_memory(loaded, sizes), read_courses(samples, sizes)
    assert [*here] == [*there]
    for group, course in here.items():
        np.testing.assert_array_equal(course.edges, there[group].edges)
        np.testing.assert_allclose(course.batches, there[group].batches, rtol=1e-12)
        assert course.within == pytest.approx(there[group].within, rel=1e-9)


def test_samples_that_cannot_be_held_stay_in_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "FEW", 0)
    found = rearranged("as recorded")
    assert load(stored(found)) is not None
    several = np.where(found["place"] % 7 == 6, "retry", "request")
    assert load(stored(found, several)) is None
    mixed = np.random.default_rng(1).permutation(found["run"].size)
    assert load(stored({name: column[mixed] for name, column in found.items()})) is None
    below = found | {"latency_ns": found["latency_ns"] - 2 * (found["place"] == 9)}
    below["latency_ns"][below["place"] == 9] = -2
    assert load(stored(below)) is None
    slow = rearranged("slow")
    monkeypatch.setattr(exact, "HELD", 4 * slow["run"].size)
    assert load(stored(slow)) is None
    assert load(stored(found)) is not None
    monkeypatch.setattr(exact, "HELD", 4 * slow["run"].size - 4)
    assert load(stored(found)) is None
