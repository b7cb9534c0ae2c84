# SPDX-License-Identifier: Apache-2.0
"""Simulated experiments do what their scenarios say, and nothing to one condition alone."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from bench.verdict.scenarios import (
    REQUESTS,
    SCENARIOS,
    TYPICAL_NS,
    Design,
    Scenario,
    Shape,
    draw,
)

from tare.stats.arrays import Array


def medians(scenario: Scenario, tries: int, runs: int = 6) -> Array:
    """Log medians of runs, (tries, conditions, runs)."""
    drawn = [draw(scenario, runs, np.random.default_rng([1, seed])) for seed in range(tries)]
    return np.log(np.median(drawn, axis=3) / TYPICAL_NS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_scenario_gives_latencies(scenario: Scenario) -> None:
    latencies, again, other = (draw(scenario, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert latencies.shape == (2 if scenario.design == "unblocked" else 3, 3, REQUESTS)
    assert np.isfinite(latencies).all()
    assert (latencies > 0).all()
    assert (latencies == again).all()
    assert not (latencies == other).any()


def test_names_are_told_apart() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def test_runs_scatter_as_said() -> None:
    still = Scenario("", run=0.05, drift=0.0)
    assert np.std(medians(still, 60)) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("design", ["blocked", "interleaved"])
def test_no_place_in_a_block_is_favoured(design: Design) -> None:
    scenario = Scenario("", design, drift=0.03, stolen=0.05)
    found = medians(scenario, 200)
    shift = (found[:, 1] - found[:, 0]).mean(axis=1)
    assert abs(shift.mean()) < 3 * shift.std() / np.sqrt(len(shift))


def test_drift_is_between_slots_and_slices_share_it() -> None:
    """Without runs' own effects the machine's drift is all there is."""
    apart = medians(Scenario("", run=0.0, drift=0.03), 40)
    shared = medians(Scenario("", "interleaved", run=0.0, drift=0.03), 40)
    assert np.std(apart[:, 1] - apart[:, 0]) > 0.03
    assert np.std(shared[:, 1] - shared[:, 0]) < 0.01
    assert np.std(shared[:, 0]) > 0.03


def test_requests_remember_the_one_before() -> None:
    runs = np.log(draw(Scenario("", correlation=0.9), 6, np.random.default_rng(1)))
    runs = runs - runs.mean(axis=2, keepdims=True)
    found = (runs[..., 1:] * runs[..., :-1]).mean() / (runs**2).mean()
    assert found == pytest.approx(0.9, abs=0.05)


def test_a_tail_is_heavy_and_two_modes_are_two() -> None:
    shapes = {
        shape: draw(Scenario("", shape=shape, run=0.0, drift=0.0), 6, np.random.default_rng(1))
        for shape in get_args(Shape)
    }
    tails = {
        name: np.quantile(latencies, 0.999) / np.median(latencies)
        for name, latencies in shapes.items()
    }
    assert tails["normal"] < 1.5
    assert tails["heavy"] > 4
    between = np.mean((shapes["bimodal"] > 1.2e6) & (shapes["bimodal"] < 1.3e6))
    assert between < 0.02
    assert np.mean(shapes["bimodal"] > 1.3e6) == pytest.approx(0.3, abs=0.02)


def test_disturbances_are_as_frequent_as_said() -> None:
    calm = Scenario("", run=0.0, drift=0.0)
    stolen = draw(replace(calm, stolen=0.05), 200, np.random.default_rng(1))
    assert np.mean(stolen > 1.6e6) == pytest.approx(0.05, abs=0.01)
    levels = draw(replace(calm, shifts=0.5), 200, np.random.default_rng(1))
    assert np.mean(levels > 1.25e6) == pytest.approx(0.5, abs=0.05)
    warm = draw(replace(calm, warm_up=0.5), 50, np.random.default_rng(1)).mean(axis=(0, 1))
    assert warm[0] == pytest.approx(1.5e6, rel=0.05)
    assert warm[400:].mean() == pytest.approx(1e6, rel=0.01)
