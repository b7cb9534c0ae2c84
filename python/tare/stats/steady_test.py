# SPDX-License-Identifier: Apache-2.0
"""Segmentation and classes on series whose course is known."""

import numpy as np
import pytest
from scipy.signal import lfilter

from tare.stats.arrays import Array
from tare.stats.steady import (
    Steadiness,
    classify,
    common_share,
    drift,
    long_run_variance,
    of_condition,
)

BATCHES = 1_000
EDGES = np.arange(BATCHES + 1) * 50


def noise(seed: int, correlation: float = 0.0, heavy: bool = False, size: int = BATCHES) -> Array:
    """AR(1) of unit variance, normal or with Student's t of 3 degrees."""
    generator = np.random.default_rng(seed)
    fresh = generator.standard_t(3, size) / 3**0.5 if heavy else generator.normal(size=size)
    filtered = lfilter([(1 - correlation**2) ** 0.5], [1, -correlation], fresh)
    return np.asarray(filtered, dtype=np.float64)


def run(course: Array, seed: int = 1, spread: float = 0.03, correlation: float = 0.5) -> Steadiness:
    """The class of a run at 40 µs times exp(course), scattering by `spread`."""
    found = classify(np.log(40e3) + course + spread * noise(seed, correlation), EDGES)
    assert found is not None
    return found


def steps(*parts: tuple[int, float]) -> Array:
    """So many batches at each relative level."""
    return np.concatenate([np.full(count, np.log(level)) for count, level in parts])


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.9])
def test_noise_alone_is_flat(correlation: float, heavy: bool) -> None:
    kinds = []
    for seed in range(100):
        found = classify(10 + 0.1 * noise(seed, correlation, heavy), EDGES)
        assert found is not None
        kinds.append(found.kind)
    assert kinds.count("flat") >= 95


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_noise_is_that_of_means_of_many_requests(correlation: float) -> None:
    found = [run(np.zeros(BATCHES), seed, 0.1, correlation).noise for seed in range(40)]
    # AR(1): n var(mean) tends to (1 + r) / (1 - r) times the variance; a batch is 50 requests.
    expected = 50 * 0.1**2 * (1 + correlation) / (1 - correlation)
    assert np.median(found) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_requests_are_worth_fewer_independent_ones(correlation: float) -> None:
    # Requests vary by 0.2² within batches of 50; their batches are those of an AR(1).
    found = [classify(10 + 0.1 * noise(seed, correlation), EDGES, 0.2**2) for seed in range(40)]
    expected = (0.1**2 + 0.2**2) / (50 * 0.1**2 * (1 + correlation) / (1 - correlation)) * EDGES[-1]
    worth = [
        steadiness.worth
        for steadiness in found
        if steadiness is not None and steadiness.worth is not None
    ]
    assert np.median(worth) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("until", [100, 200, 400])
def test_a_slow_start_is_a_warm_up_that_is_cut_where_it_ends(until: int) -> None:
    found = run(steps((until, 1.5), (BATCHES - until, 1)))
    assert found.kind == "warm-up"
    assert found.cut == pytest.approx(until * 50, abs=20 * 50)
    assert found.segments[0].level == pytest.approx(60e3, rel=0.05)
    assert found.segments[-1].level == pytest.approx(40e3, rel=0.02)
    assert found.segments[-1].end == 50_000


def test_a_warm_up_that_decays_is_cut_where_it_is_within_five_percent() -> None:
    found = run(np.exp(-np.arange(BATCHES) / 60))
    assert found.kind == "warm-up"
    assert found.cut is not None
    # exp(-t / 60) is below log 1.05 from t = 181 on.
    assert 80 * 50 <= found.cut <= 300 * 50


def test_a_run_that_gets_slower_and_stays_so_is_a_slowdown() -> None:
    assert run(steps((300, 1), (700, 1.3))).kind == "slowdown"
    assert run(steps((100, 2), (200, 1), (700, 1.3))).kind == "slowdown"


@pytest.mark.parametrize(
    "course",
    [steps((700, 1.3), (300, 1)), steps((700, 1), (300, 1.3)), np.linspace(0, 1, BATCHES)],
)
def test_levels_that_shift_in_the_second_half_are_no_steady_state(course: Array) -> None:
    found = run(course)
    assert found.kind == "no steady state"
    assert found.cut is None
    assert len(found.segments) > 1


def test_shifts_within_five_percent_are_one_level() -> None:
    found = run(steps((500, 1.03), (500, 1)), spread=0.003)
    assert found.kind == "flat"
    assert len(found.segments) > 1


def test_a_short_disturbance_is_no_other_state() -> None:
    found = run(steps((600, 1), (40, 1.4), (360, 1)))
    assert found.kind == "flat"
    assert len(found.segments) == 3


def test_short_turns_of_speed_are_no_steady_state_when_they_come_often() -> None:
    turns = steps(*[(160, 1), (40, 0.6)] * 4, (200, 1))
    assert run(turns).kind == "no steady state"


def test_a_fast_moment_early_on_is_no_slowdown() -> None:
    assert run(steps((100, 1.5), (100, 1), (30, 0.7), (770, 1))).kind == "warm-up"


def test_constant_runs_have_no_noise_to_be_measured_by() -> None:
    found = classify(np.full(BATCHES, 7.0), EDGES)
    assert found is not None
    assert (found.kind, found.cut) == ("flat", 0)
    assert [(segment.start, segment.end) for segment in found.segments] == [(0, 50_000)]


def test_batches_that_are_missing_keep_the_places_of_the_others() -> None:
    there = np.r_[0:100, 150:BATCHES]
    course = steps((200, 1.5), (800, 1))[there]
    found = classify(course + 0.01 * noise(3, size=there.size), [*EDGES[there], 50_000])
    assert found is not None
    assert found.cut == pytest.approx(200 * 50, abs=20 * 50)
    assert found.segments[-1].end == 50_000


def test_what_cannot_be_classified() -> None:
    assert classify(np.ones(49), np.arange(50)) is None
    with pytest.raises(ValueError, match="edges"):
        classify(np.ones(100), np.arange(100))
    with pytest.raises(ValueError, match="finite"):
        classify(np.full(100, np.nan), np.arange(101))


def test_the_share_is_where_every_condition_has_settled() -> None:
    flat = run(np.zeros(BATCHES))
    early, late = run(steps((100, 1.5), (900, 1))), run(steps((300, 1.5), (700, 1)))
    never = run(steps((700, 1), (300, 1.3)))
    first, second = (
        steadiness.cut / steadiness.segments[-1].end
        for steadiness in (early, late)
        if steadiness.cut
    )
    assert common_share([[early, never], [late]]) == second
    assert common_share([[early, never, late]]) == second
    # A machine that changes its level under way has runs that happen to look like a warm-up.
    assert common_share([[late, *[never] * 3]]) == 0
    # One run of four that shifted late is not what its condition does.
    assert common_share([[early, late, early, early], [flat] * 4]) == first
    assert common_share([[flat] * 8, [late] * 4]) == second
    assert common_share([[never], []]) == common_share([]) == 0


def test_half_is_left_out_where_runs_of_unlike_length_warm_up() -> None:
    warm = np.where(np.arange(BATCHES) < 50, np.log(1.5), 0.0) + 0.01 * noise(1, 0.3)
    short, long = (
        [steadiness] * 3
        for steadiness in (classify(warm[:500], EDGES[:501]), classify(warm, EDGES))
        if steadiness is not None
    )
    assert common_share([short, long]) == 0.5
    assert common_share([long, long]) == pytest.approx(0.05, abs=0.01)
    flat = [classify(0.01 * noise(2, 0.3)[:size], EDGES[: size + 1]) for size in (500, BATCHES)]
    assert common_share([[steadiness] for steadiness in flat if steadiness is not None]) == 0


def test_the_drift_is_what_the_level_still_falls_by() -> None:
    edges = np.arange(0, 505, 5)
    level = np.where(np.arange(100) < 60, 0.3, 0.1)
    assert drift(level, edges, 0) == pytest.approx(0.2)
    assert drift(level, edges, 300) == 0
    assert drift(level, edges, 485) is None
    rising = drift(-level, edges, 0)
    assert rising == pytest.approx(-0.2)


def test_runs_of_a_condition_that_differ_in_class_are_inconsistent() -> None:
    flat, warm = run(np.zeros(BATCHES)), run(steps((300, 1.5), (700, 1)))
    assert of_condition([flat, flat]) == "flat"
    assert of_condition([flat, warm]) == "inconsistent"
    assert of_condition([]) is None


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
def test_the_long_run_variance_is_that_of_neighbouring_means(correlation: float) -> None:
    found = [long_run_variance(noise(seed, correlation, size=2_000)) for seed in range(20)]
    # Of neighbouring means of 8 values of AR(1), from their covariances. In the limit it would be
    # (1 + r) / (1 - r); of that, blocks of 8 see two thirds at r = 0.6.
    weights = np.repeat([1, -1], 8) / 8
    covariance = correlation ** np.abs(np.subtract.outer(np.arange(16), np.arange(16)))
    assert np.mean(found) == pytest.approx(weights @ covariance @ weights * 4, rel=0.1)


def test_a_shift_of_level_hardly_moves_the_long_run_variance() -> None:
    series = noise(1, 0.3, size=200)
    shifted = series + np.repeat([0.0, 10.0], 100)
    assert long_run_variance(shifted) == pytest.approx(long_run_variance(series), rel=0.35)
