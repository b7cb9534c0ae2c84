# SPDX-License-Identifier: Apache-2.0
"""Two-sample tests against SciPy or their definition, with ties, one value and bad values."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from tare.stats.two_samples import (
    Outcome,
    anderson_darling,
    cramer_von_mises,
    kolmogorov_smirnov,
    mann_whitney,
    student_t,
    wasserstein_of_logs,
    welch_t,
)

Test = Callable[[list[float], list[float]], Outcome | None]
TESTS: list[Test] = [
    student_t,
    welch_t,
    mann_whitney,
    kolmogorov_smirnov,
    anderson_darling,
    cramer_von_mises,
]
ties = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=15)


def values(found: Outcome | None) -> tuple[float, float]:
    assert found is not None
    return found.statistic, found.p


@given(ties, ties)
def test_t_tests_are_scipys(first: list[float], second: list[float]) -> None:
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    student, welch = (stats.ttest_ind(second, first, equal_var=equal) for equal in (True, False))
    assert values(student_t(first, second)) == pytest.approx((student.statistic, student.pvalue))
    assert values(welch_t(first, second)) == pytest.approx((welch.statistic, welch.pvalue))


@given(ties, ties)
def test_mann_whitney_counts_pairs(first: list[float], second: list[float]) -> None:
    assume(len({*first, *second}) > 1)
    statistic, p = values(mann_whitney(first, second))
    assert statistic == sum((b > a) + (b == a) / 2 for a in first for b in second)
    assert p == pytest.approx(stats.mannwhitneyu(first, second).pvalue)


def test_mann_whitney_is_exact_where_samples_are_small() -> None:
    """Of the 20 ways to place three values among six, two are as far out."""
    assert values(mann_whitney([1.0, 2, 3], [4.0, 5, 6])) == pytest.approx((9, 0.1))


def distributions(first: list[float], second: list[float]) -> list[tuple[float, float, int]]:
    """F, G and how many values there are, at each value."""
    both = sorted({*first, *second})
    return [
        (
            sum(value <= x for value in first) / len(first),
            sum(value <= x for value in second) / len(second),
            first.count(x) + second.count(x),
        )
        for x in both
    ]


@pytest.mark.filterwarnings("ignore:ks_2samp:RuntimeWarning")
@given(ties, ties)
def test_distances_are_their_definitions(first: list[float], second: list[float]) -> None:
    n, m = len(first), len(second)
    at = distributions(first, second)
    kolmogorov, p = values(kolmogorov_smirnov(first, second))
    assert kolmogorov == pytest.approx(max(abs(f - g) for f, g, _ in at))
    assert p == pytest.approx(stats.ks_2samp(first, second).pvalue)
    cramer, _ = values(cramer_von_mises(first, second))
    assert cramer == pytest.approx(stats.cramervonmises_2samp(first, second).statistic)
    if len({*first, *second}) == n + m:
        total = sum(count * (f - g) ** 2 for f, g, count in at)
        assert cramer == pytest.approx(n * m / (n + m) ** 2 * total)


def test_anderson_darling_says_where_its_table_ends() -> None:
    generator = np.random.default_rng(8)
    first = generator.normal(0, 1, 200)
    for shift, p_is in ((0.0, "at least"), (0.25, "equal"), (1.0, "at most")):
        found = anderson_darling(first, generator.normal(shift, 1, 200))
        assert found is not None
        assert found.p_is == p_is
        assert 0.001 <= found.p <= 0.25


def test_anderson_darling_of_a_published_example() -> None:
    """Scholz and Stephens (1987), their four laboratories taken two at a time: SciPy's value."""
    first = [38.7, 41.5, 43.8, 44.5, 45.5, 46.0, 47.7, 58.0]
    second = [39.2, 39.3, 39.7, 41.4, 41.8, 42.9, 43.3, 45.8]
    found = anderson_darling(first, second)
    assert found is not None
    expected = stats.anderson_ksamp([first, second], variant="midrank")
    assert found.statistic == expected.statistic


@given(ties, ties)
def test_wasserstein_is_the_area_between_the_distributions(
    first: list[float], second: list[float]
) -> None:
    first_values, second_values = np.exp(first), np.exp(second)
    at = distributions(first, second)
    gaps = np.diff(sorted({*first, *second}))
    area = sum(abs(f - g) * gap for (f, g, _), gap in zip(at, gaps, strict=False))
    assert wasserstein_of_logs(first_values, second_values) == pytest.approx(area)


def test_of_equal_and_of_few_values_what_exists_is_given() -> None:
    same = [2.0, 2.0, 2.0]
    without_spread: list[Test] = [student_t, welch_t, mann_whitney, anderson_darling]
    for test in without_spread:
        assert test(same, same) is None
    assert values(kolmogorov_smirnov(same, same)) == (0, 1)
    assert values(cramer_von_mises(same, same))[1] == 1
    assert values(kolmogorov_smirnov([1.0], [2.0])) == (1, 1)
    assert welch_t([1.0], [2.0, 3.0]) is None
    assert cramer_von_mises([1.0], [2.0, 3.0]) is None
    assert student_t([1.0], [2.0]) is None
    assert values(student_t([1.0], [2.0, 3.0])) == pytest.approx(
        tuple(stats.ttest_ind([2.0, 3.0], [1.0]))
    )
    for every in TESTS:
        assert every([], same) is None
    assert wasserstein_of_logs([], same) is None


@pytest.mark.parametrize("bad", [[1.0, np.nan], [np.inf, 1.0]])
@pytest.mark.parametrize("test", [*TESTS, wasserstein_of_logs])
def test_what_is_not_finite_is_refused(test: Test, bad: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        test(bad, [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        test([1.0, 2.0], bad)


def test_what_has_no_logarithm_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        wasserstein_of_logs([0.0, 1.0], [1.0])
