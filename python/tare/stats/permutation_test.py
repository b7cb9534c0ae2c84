# SPDX-License-Identifier: Apache-2.0
"""Permutation tests against SciPy, listings by hand, and their level."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tare.stats.arrays import Array
from tare.stats.permutation import SAMPLES, label_permutation, least_p, sign_flip

small = st.lists(st.integers(-3, 3), min_size=1, max_size=6)
two_or_more = st.lists(st.integers(-3, 3), min_size=2, max_size=5)


def _mean_distance(first: Array, second: Array, axis: int = -1) -> Array:
    return np.asarray(np.abs(first.mean(axis=axis) - second.mean(axis=axis)))


@given(small)
def test_sign_flip_lists_every_pattern(values: list[int]) -> None:
    """Small integers give many ties, and their sums are exact in the oracle."""
    sums = [
        sum(sign * value for sign, value in zip(signs, values, strict=True))
        for signs in product((1, -1), repeat=len(values))
    ]
    expected = sum(abs(total) >= abs(sum(values)) for total in sums) / len(sums)
    assert sign_flip(values) == pytest.approx(expected)


@settings(max_examples=50)
@given(two_or_more, two_or_more)
def test_label_permutation_agrees_with_scipy(first: list[int], second: list[int]) -> None:
    first_runs, second_runs = np.array(first, dtype=float), np.array(second, dtype=float)
    expected = stats.permutation_test(
        (first_runs, second_runs),
        _mean_distance,
        vectorized=True,
        n_resamples=comb(first_runs.size + second_runs.size, first_runs.size),
        alternative="greater",
    ).pvalue
    assert label_permutation(first_runs, second_runs) == pytest.approx(expected)


def test_the_paired_minimum_is_reached_by_six_runs_of_one_sign() -> None:
    assert sign_flip([0.1, 0.2, 0.15, 0.3, 0.12, 0.2]) == 2 / 2**6 == least_p(6, paired=True)
    assert label_permutation([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == 2 / 252
    assert least_p(5, paired=False) == 2 / 252
    assert least_p(1, paired=True) == 1


def test_one_run_a_condition_proves_nothing() -> None:
    assert sign_flip([3.0]) == 1
    assert label_permutation([1.0], [2.0]) == 1


def test_differences_of_decimals_that_tie_are_ties() -> None:
    """0.1 + 0.2 and 0.3 differ in the last bit: rearranged sums must still count as equal."""
    values = [0.1, 0.2, 0.3, -0.6, 0.1, 0.2]
    expected = sign_flip([round(10 * value) for value in values])
    assert sign_flip(values) == expected


@pytest.mark.parametrize("spread", [1e-1, 1e-3, 1e-6])
def test_the_mirrored_labelling_is_a_tie_however_close_the_runs_lie(spread: float) -> None:
    """Five runs of each that do not overlap: all left or all right, the least p there is."""
    generator = np.random.default_rng(3)
    for _ in range(200):
        first, second = (np.log(generator.uniform(1, 1 + spread, 5) * 1e5) for _ in range(2))
        assert label_permutation(first, second + 2 * spread) == least_p(5, paired=False)


def test_sampled_p_is_close_to_the_exact_one_and_never_zero() -> None:
    generator = np.random.default_rng(1)
    values = generator.normal(0.4, 1, 24)
    sampled = sign_flip(values)
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    exact = np.mean(np.abs(sums) >= abs(values.sum()) - 1e-9)
    assert sampled == pytest.approx(exact, abs=4 * np.sqrt(exact / SAMPLES))
    assert sign_flip(np.full(24, 5.0) + generator.normal(0, 0.1, 24)) == 1 / (SAMPLES + 1)


def test_sampled_labels_are_close_to_welch_for_normal_runs() -> None:
    generator = np.random.default_rng(2)
    first, second = generator.normal(0, 1, 15), generator.normal(0.7, 1, 15)
    result = label_permutation(first, second)
    assert result == pytest.approx(stats.ttest_ind(first, second).pvalue, abs=0.01)


@pytest.mark.parametrize("bad", [[], [1, np.nan], [np.inf], [[1.0, 2.0]]])
def test_what_is_not_finite_numbers_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        sign_flip(bad)
    with pytest.raises(ValueError, match="expected"):
        label_permutation([1.0], bad)
