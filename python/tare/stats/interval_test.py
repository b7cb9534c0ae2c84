# SPDX-License-Identifier: Apache-2.0
"""Intervals and equivalence against SciPy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from tare.stats.equivalence import equivalence_p
from tare.stats.interval import Difference, paired_difference, welch_difference

numbers = st.lists(st.floats(-100, 100), min_size=2, max_size=12)
SPREAD = 1e-3


@given(numbers, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_paired_interval_is_scipys(values: list[float], level: float) -> None:
    assume(np.std(values) > SPREAD)
    found = paired_difference(values)
    assert found is not None
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    assert found.interval(level) == pytest.approx((expected.low, expected.high))
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


@given(numbers, numbers, st.sampled_from([0.9, 0.95]))
def test_the_unpaired_interval_is_scipys(
    first: list[float], second: list[float], level: float
) -> None:
    assume(np.std(first) > SPREAD and np.std(second) > SPREAD)
    found = welch_difference(first, second)
    assert found is not None
    expected = stats.ttest_ind(second, first, equal_var=False)
    interval = expected.confidence_interval(level)
    assert found.freedom == pytest.approx(expected.df)
    assert found.interval(level) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_one_value_has_no_spread() -> None:
    assert paired_difference([1.0]) is None
    assert paired_difference([]) is None
    assert welch_difference([1.0], [1.0, 2.0]) is None


def test_values_all_equal_have_an_interval_of_no_width() -> None:
    found = welch_difference([1.0, 1.0], [3.0, 3.0])
    assert found is not None
    assert found.interval(0.95) == (2.0, 2.0)
    assert found.p == 0
    assert Difference(0.0, 0.0, 3.0).p == 1
    assert equivalence_p(found, -1, 1) == 1
    assert equivalence_p(found, 1, 3) == 0


@given(numbers, st.floats(0.01, 50))
def test_equivalence_is_the_90_percent_interval_inside_the_bounds(
    values: list[float], bound: float
) -> None:
    assume(np.std(values) > SPREAD)
    found = paired_difference(values)
    assert found is not None
    low, high = found.interval(0.9)
    assume(abs(low + bound) > 1e-9 and abs(high - bound) > 1e-9)
    assert (equivalence_p(found, -bound, bound) <= 0.05) == (-bound < low and high < bound)


def test_equivalence_is_scipys_two_one_sided_tests() -> None:
    values = [0.01, -0.02, 0.015, 0.0, 0.005, -0.01]
    found = paired_difference(values)
    assert found is not None
    expected = max(
        stats.ttest_1samp(values, -0.03, alternative="greater").pvalue,
        stats.ttest_1samp(values, 0.03, alternative="less").pvalue,
    )
    assert equivalence_p(found, -0.03, 0.03) == pytest.approx(expected)


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match="low < high"):
        equivalence_p(Difference(0, 1, 5), 1, -1)
