# SPDX-License-Identifier: Apache-2.0
"""The shift function's band: Student's t where there is one quantile, and its joint level."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from tare.stats.arrays import Array
from tare.stats.shift import Pair, Shift, shift_functions

QUANTILES = 11


def shift_function(first: npt.ArrayLike, second: npt.ArrayLike, *, paired: bool) -> Shift | None:
    """Of one pair alone."""
    (found,) = shift_functions([Pair(first, second)], paired=paired)
    return found


@pytest.mark.parametrize("paired", [True, False])
def test_of_one_quantile_it_is_the_t_test(paired: bool) -> None:
    generator = np.random.default_rng(1)
    first, second = (
        generator.normal(0, 1, (7, 1)),
        generator.normal(0.8, 2, (7 if paired else 10, 1)),
    )
    found = shift_function(first, second, paired=paired)
    assert found is not None
    expected = (
        stats.ttest_rel(second[:, 0], first[:, 0])
        if paired
        else stats.ttest_ind(second[:, 0], first[:, 0], equal_var=False)
    )
    interval = expected.confidence_interval(0.95)
    width = interval.high - interval.low
    assert found.estimate[0] == pytest.approx(second.mean() - first.mean())
    assert found.low[0] == pytest.approx(interval.low, abs=0.02 * width)
    assert found.high[0] == pytest.approx(interval.high, abs=0.02 * width)
    assert found.p[0] == pytest.approx(expected.pvalue, abs=0.015)


def correlated(generator: np.random.Generator, heavy: bool, runs: int) -> Array:
    """Log quantiles of runs: neighbours alike (0.9), the far tail three times as wide."""
    place = np.arange(QUANTILES)
    root = np.linalg.cholesky(0.9 ** np.abs(place[:, None] - place))
    drawn = (
        generator.standard_t(3, (runs, QUANTILES))
        if heavy
        else generator.normal(size=(runs, QUANTILES))
    )
    return np.asarray(drawn @ root.T * np.linspace(1, 3, QUANTILES))


@pytest.mark.exhaustive
@pytest.mark.parametrize("runs", [6, 8, 10])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("heavy", [True, False])
def test_the_band_holds_for_all_quantiles_at_once(runs: int, paired: bool, heavy: bool) -> None:
    generator = np.random.default_rng(runs)
    truth, tries = np.linspace(-0.5, 2, QUANTILES), 200
    covered = 0
    for _ in range(tries):
        first, second = (correlated(generator, heavy, runs) for _ in range(2))
        found = shift_function(first, second + truth, paired=paired)
        assert found is not None
        covered += bool(((found.low <= truth) & (truth <= found.high)).all())
    assert covered / tries >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / tries)
    assert covered < tries, "a band that is never left is no band of 95 %"


@pytest.mark.parametrize("paired", [True, False])
def test_the_band_and_the_p_values_say_the_same(paired: bool) -> None:
    generator = np.random.default_rng(3)
    first, second = correlated(generator, False, 8), correlated(generator, False, 8)
    found = shift_function(first, second + np.linspace(0, 9, QUANTILES), paired=paired)
    assert found is not None
    outside = (found.low > 0) | (found.high < 0)
    assert 0 < outside.sum() < QUANTILES
    assert np.array_equal(found.p <= 0.05, outside)


def test_the_band_is_narrower_than_bonferronis_and_wider_than_one_interval() -> None:
    generator = np.random.default_rng(4)
    first, second = correlated(generator, False, 8), correlated(generator, False, 8)
    found = shift_function(first, second, paired=True)
    assert found is not None
    error = (second - first).std(axis=0, ddof=1) / np.sqrt(8)
    times = (found.high - found.low) / 2 / error
    assert times == pytest.approx(times[0])
    assert stats.t.ppf(0.975, 7) < times[0] < stats.t.ppf(1 - 0.025 / QUANTILES, 7)


def test_a_quantile_without_spread_takes_nothing_from_the_others() -> None:
    generator = np.random.default_rng(5)
    first, second = generator.normal(0, 1, (6, 2)), generator.normal(0, 1, (6, 2))
    first[:, 1], second[:, 1] = 0.1, 0.3
    both = shift_function(first, second, paired=True)
    alone = shift_function(first[:, :1], second[:, :1], paired=True)
    assert both is not None
    assert alone is not None
    assert (both.low[0], both.high[0]) == pytest.approx((alone.low[0], alone.high[0]), rel=0.05)
    assert (both.low[1], both.high[1], both.p[1]) == pytest.approx((0.2, 0.2, 0))
    same = shift_function(np.ones((4, 2)), np.ones((5, 2)), paired=False)
    assert same is not None
    assert same.p.tolist() == [1, 1]


def test_one_run_has_no_band() -> None:
    assert shift_function(np.ones((1, 2)), np.ones((1, 2)), paired=True) is None
    assert shift_function(np.ones((2, 1)), np.ones((1, 1)), paired=False) is None


@pytest.mark.parametrize(
    ("first", "second", "paired"),
    [
        ([1.0, 2], [1.0, 2], True),
        ([[1.0], [2]], [[1.0], [2], [3]], True),
        ([[1.0], [2]], [[1.0, 2], [2, 3]], False),
        ([[1.0], [np.nan]], [[1.0], [2]], True),
        ([[1.0], [np.inf]], [[1.0], [2]], False),
    ],
)
def test_what_does_not_fit_is_refused(
    first: npt.ArrayLike, second: npt.ArrayLike, paired: bool
) -> None:
    with pytest.raises(ValueError, match="expected"):
        shift_function(first, second, paired=paired)


@pytest.mark.exhaustive
@pytest.mark.parametrize("paired", [True, False])
def test_one_band_holds_for_all_pairs_of_a_baseline(paired: bool) -> None:
    generator = np.random.default_rng(12)
    tries, covered = 300, 0
    for _ in range(tries):
        base, *others = (correlated(generator, False, 8) for _ in range(4))
        pairs = [Pair(base, other, (0, place)) for place, other in enumerate(others, start=1)]
        if paired:
            pairs = [Pair(base, other, (0, 0)) for other in others]
        found = [shift for shift in shift_functions(pairs, paired=paired) if shift is not None]
        assert len(found) == len(others)
        covered += all(bool(((shift.low <= 0) & (shift.high >= 0)).all()) for shift in found)
    assert covered / tries >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / tries)
    assert covered < tries


def test_the_same_pair_twice_has_the_band_of_one() -> None:
    generator = np.random.default_rng(13)
    base, other = correlated(generator, False, 8), correlated(generator, False, 8)
    alone = shift_function(base, other, paired=True)
    first, second = shift_functions([Pair(base, other), Pair(base, other)], paired=True)
    assert alone is not None
    assert first is not None
    assert second is not None
    assert first.low == pytest.approx(alone.low)
    assert second.low == pytest.approx(alone.low)
