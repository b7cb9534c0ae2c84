# SPDX-License-Identifier: Apache-2.0
"""Hodges and Lehmann's estimate written out; its interval against Wilcoxon's exact tests."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tare.stats.hodges_lehmann import paired_shift, unpaired_shift

numbers = st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=9)


@given(numbers)
def test_paired_it_is_the_median_of_the_means_of_all_pairs(values: list[float]) -> None:
    means = [(a + b) / 2 for i, a in enumerate(values) for b in values[i:]]
    assert paired_shift(values).estimate == pytest.approx(np.median(means))


@given(numbers, numbers)
def test_unpaired_it_is_the_median_of_all_differences(
    first: list[float], second: list[float]
) -> None:
    differences = [b - a for a in first for b in second]
    assert unpaired_shift(first, second).estimate == pytest.approx(np.median(differences))


@pytest.mark.parametrize("runs", [6, 7, 10, 14])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_paired_it_holds_the_shifts_that_wilcoxons_test_keeps(runs: int, level: float) -> None:
    values = np.random.default_rng(runs).normal(0.3, 1, runs)
    found = paired_shift(values, level)
    assert found.interval is not None
    for end, inwards in zip(found.interval, (1e-9, -1e-9), strict=True):
        inside, outside = (
            stats.wilcoxon(values - end - step, method="exact").pvalue
            for step in (inwards, -inwards)
        )
        assert outside <= 1 - level < inside
        assert found.level == pytest.approx(1 - outside)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (6, 9), (10, 10)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_unpaired_it_holds_the_shifts_that_the_rank_sum_test_keeps(
    n: int, m: int, level: float
) -> None:
    generator = np.random.default_rng(n)
    first, second = generator.normal(0, 1, n), generator.normal(0.5, 1, m)
    found = unpaired_shift(first, second, level)
    assert found.interval is not None
    for end, inwards in zip(found.interval, (1e-9, -1e-9), strict=True):
        inside, outside = (
            stats.mannwhitneyu(second - end - step, first, method="exact").pvalue
            for step in (inwards, -inwards)
        )
        assert outside <= 1 - level < inside
        assert found.level == pytest.approx(1 - outside)


def test_a_level_that_so_few_runs_do_not_reach_has_no_interval() -> None:
    assert paired_shift([1.0, 2, 3, 4, 5]).interval is None
    assert paired_shift([1.0, 2, 3, 4, 5, 6]).level == pytest.approx(1 - 2 / 2**6)
    assert paired_shift([1.0, 2, 3, 4, 5, 6]).interval == (1, 6)
    assert unpaired_shift([1.0, 2, 3], [1.0, 2, 3]).interval is None
    assert unpaired_shift([0.0] * 4, [1.0, 2, 3, 4]).level == pytest.approx(1 - 2 / comb(8, 4))
    assert paired_shift([7.0]).estimate == 7


@pytest.mark.parametrize("runs", range(4, 9))
def test_a_level_that_is_just_reached_has_the_widest_interval(runs: int) -> None:
    first, second = np.zeros(runs), np.arange(1.0, runs + 1)
    assert unpaired_shift(first, second, 1 - 2 / comb(2 * runs, runs)).interval == (1, runs)
    assert paired_shift(second, 1 - 2 / 2**runs).interval == (1, runs)


@pytest.mark.parametrize("bad", [[], [np.nan], [np.inf]])
def test_what_is_not_finite_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        paired_shift(bad)
    with pytest.raises(ValueError, match="expected"):
        unpaired_shift([1.0], bad)
    with pytest.raises(ValueError, match="level"):
        paired_shift([1.0], level=1.0)
