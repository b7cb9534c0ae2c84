# SPDX-License-Identifier: Apache-2.0
"""What can be detected, against experiments that are judged by the rule itself."""

from math import sqrt

import numpy as np
import pytest

from tare.stats.interval import Difference, paired_difference, welch_difference
from tare.stats.permutation import label_permutation, sign_flip
from tare.stats.power import (
    Design,
    family_factor,
    pooled_spread,
    spread_of_differences,
    upper_spread,
)
from tare.stats.step_down import paired as adjusted

SPREAD = 0.028


def found(p: float, difference: Difference | None, threshold: float) -> bool:
    """The rule of a verdict `slower`."""
    assert difference is not None
    low, high = difference.interval(0.95)
    return p <= 0.05 and low > 0 and high > threshold


@pytest.mark.parametrize("threshold", [0.0, 0.03])
@pytest.mark.parametrize("runs", [6, 8, 14])
def test_what_pilots_call_detectable_is_found_four_times_in_five(
    runs: int, threshold: float
) -> None:
    generator = np.random.default_rng(runs)
    seen = []
    for _ in range(600):
        spread = spread_of_differences(generator.normal(0, SPREAD, runs))
        assert spread is not None
        least = Design(*spread, True, threshold=threshold).detectable(runs)
        assert least is not None
        fresh = generator.normal(least, SPREAD, runs)
        seen.append(found(sign_flip(fresh), paired_difference(fresh), threshold))
    assert np.mean(seen) == pytest.approx(0.8, abs=0.07)


def test_unpaired_pilots_too() -> None:
    generator = np.random.default_rng(1)
    seen = []
    for _ in range(600):
        spread = pooled_spread(*generator.normal(0, SPREAD, (2, 8)))
        assert spread is not None
        least = Design(*spread, False, threshold=0.03).detectable(8)
        assert least is not None
        first, second = generator.normal(0, SPREAD, 8), generator.normal(least, SPREAD, 8)
        seen.append(found(label_permutation(first, second), welch_difference(first, second), 0.03))
    assert np.mean(seen) == pytest.approx(0.8, abs=0.07)


def test_of_many_comparisons_a_larger_difference_is_needed() -> None:
    generator = np.random.default_rng(2)
    seen, count = [], 6
    for _ in range(300):
        pilot = generator.normal(0, SPREAD, (8, count))
        spread = spread_of_differences(pilot[:, 0])
        assert spread is not None
        factor = family_factor(pilot, 0)
        assert factor > 1
        least = Design(*spread, True, family=factor).detectable(8)
        assert least is not None
        fresh = generator.normal([least, *[0] * (count - 1)], SPREAD, (8, count))
        difference = paired_difference(fresh[:, 0])
        seen.append(found(float(adjusted(fresh)[0]), difference, 0.0))
    assert np.mean(seen) == pytest.approx(0.8, abs=0.09)
    assert family_factor(generator.normal(0, 1, (8, 1)), 0) == 1


def test_too_few_runs_detect_nothing() -> None:
    design = Design(0.01, 7, True)
    assert design.detectable(5) is None
    assert design.chance(9.0, 5) == 0
    assert design.detectable(6) is not None
    assert Design(0.01, 7, False).detectable(3) is None
    assert spread_of_differences([0.1]) is None
    assert pooled_spread([0.1], [0.2]) is None


@pytest.mark.parametrize("paired", [True, False])
def test_the_runs_needed_are_the_first_that_find_the_difference(paired: bool) -> None:
    design = Design(0.04, 7, paired)
    runs = design.runs_to_see(0.03)
    assert runs is not None
    assert design.chance(0.03, runs) >= 0.8 > design.chance(0.03, runs - 1)
    assert Design(1.0, 7, paired).runs_to_see(1e-6) is None


def test_the_runs_that_show_no_difference_have_an_interval_inside_the_threshold() -> None:
    generator = np.random.default_rng(3)
    runs = Design(SPREAD, 10**6, True, threshold=0.03).runs_to_show(0.005)
    assert runs is not None
    inside = []
    for _ in range(600):
        difference = paired_difference(generator.normal(0.005, SPREAD, runs))
        assert difference is not None
        low, high = difference.interval(0.9)
        inside.append(low > -0.03 and high < 0.03)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.07)


def test_no_number_of_runs_shows_what_is_not_inside() -> None:
    assert Design(SPREAD, 7, True, threshold=0.03).runs_to_show(0.03) is None
    assert Design(SPREAD, 7, True, threshold=0.03, systematic=0.04).runs_to_show(0.0) is None


def test_what_no_run_averages_out_must_be_exceeded_too() -> None:
    alone, more = (Design(SPREAD, 7, True, systematic=width).detectable(8) for width in (0.0, 0.05))
    assert alone is not None
    assert more == pytest.approx(alone + 0.05, abs=0.015)


def test_the_upper_bound_covers_four_times_in_five() -> None:
    generator = np.random.default_rng(4)
    spreads = generator.normal(0, 1, (20_000, 5)).std(axis=1, ddof=1)
    covered = np.mean(spreads * upper_spread(1.0, 4) >= 1)
    assert covered == pytest.approx(0.8, abs=0.012)


def test_the_pooled_spread_is_the_textbook_one() -> None:
    first, second = [1.0, 2.0, 4.0], [2.0, 3.0]
    pooled = pooled_spread(first, second)
    assert pooled is not None
    expected = sqrt((2 * np.var(first, ddof=1) + np.var(second, ddof=1)) / 3)
    assert pooled[0] == pytest.approx(expected)
    assert pooled[1] == 3
