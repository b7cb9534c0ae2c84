# SPDX-License-Identifier: Apache-2.0
"""Detectable effects against simulation and the published table of CVs and runs."""

import itertools
from math import expm1, sqrt

import numpy as np
import pytest
from scipy import stats

from tare.stats.power import (
    detectable,
    pooled_spread,
    power_curve,
    runs_for,
    spread_of_differences,
    upper_spread,
)


@pytest.mark.parametrize("paired", [True, False])
def test_the_detectable_difference_is_found_four_times_in_five(paired: bool) -> None:
    runs, spread, tries = 8, 0.02, 20_000
    least = detectable(spread, runs, paired)
    assert least is not None
    generator = np.random.default_rng(3)
    if paired:
        found = stats.ttest_1samp(generator.normal(least, spread, (tries, runs)), 0, axis=1)
    else:
        one = generator.normal(0, spread, (tries, runs))
        found = stats.ttest_ind(generator.normal(least, spread, (tries, runs)), one, axis=1)
    assert np.mean(found.pvalue <= 0.05) == pytest.approx(0.8, abs=0.012)


@pytest.mark.parametrize(
    ("variation", "runs", "percent"),
    [(0.01, 5, 2.0), (0.01, 10, 1.3), (0.01, 20, 0.9), (0.03, 5, 6.1), (0.05, 10, 6.6)],
)
def test_unpaired_runs_detect_what_is_known_of_them(
    variation: float, runs: int, percent: float
) -> None:
    """80 % power at 5 %: textbook values for runs with this coefficient of variation."""
    least = detectable(variation, runs, paired=False)
    assert least is not None
    assert 100 * expm1(least) == pytest.approx(percent, abs=0.1 * percent)


def test_one_run_detects_nothing() -> None:
    assert detectable(0.01, 1, paired=True) is None
    assert spread_of_differences([0.1]) is None
    assert pooled_spread([0.1], [0.2]) is None


def test_the_runs_needed_are_the_first_that_detect() -> None:
    runs = runs_for(0.03, 0.04, paired=True)
    assert runs is not None
    enough, too_few = detectable(0.04, runs, True), detectable(0.04, runs - 1, True)
    assert enough is not None
    assert too_few is not None
    assert enough <= 0.03 < too_few
    assert runs_for(1e-6, 1.0, paired=True) is None
    assert runs_for(0.03, 0.0, paired=True) == 2
    with pytest.raises(ValueError, match="above zero"):
        runs_for(0.0, 1.0, paired=True)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 7])
def test_the_runs_needed_are_those_found_by_counting(paired: bool, alpha: float) -> None:
    """SciPy's noncentral t has no value in bands of its noncentrality: none may be asked for."""
    least = [detectable(1.0, runs, paired, alpha) or np.nan for runs in range(2, 2_001)]
    for spread in np.geomspace(0.003, 0.2, 400):
        counted = next(runs for runs, one in enumerate(least, start=2) if spread * one <= 0.03)
        assert runs_for(0.03, float(spread), paired, alpha) == counted


def test_the_detectable_difference_is_that_of_the_noncentral_t_written_out() -> None:
    """P(T > c) integrated over the chi-squared of its denominator; `nctdtrinc` inverts it."""
    for runs, alpha in itertools.product((2, 3, 8, 53, 400), (0.05, 0.05 / 60)):
        freedom = runs - 1
        critical = stats.t.isf(alpha / 2, freedom)
        least = detectable(1.0, runs, paired=True, alpha=alpha)
        assert least is not None
        shares = (np.arange(20_000) + 0.5) / 20_000
        root = np.sqrt(stats.chi2.ppf(shares, freedom) / freedom)
        power = np.mean(stats.norm.sf(critical * root - least * sqrt(runs)))
        assert power == pytest.approx(0.8, abs=1e-3)


def test_the_upper_bound_covers_four_times_in_five() -> None:
    generator = np.random.default_rng(4)
    spreads = generator.normal(0, 1, (20_000, 5)).std(axis=1, ddof=1)
    covered = np.mean(spreads * upper_spread(1.0, 4) >= 1)
    assert covered == pytest.approx(0.8, abs=0.012)


def test_the_pooled_spread_is_the_textbook_one() -> None:
    one, two = [1.0, 2.0, 4.0], [2.0, 3.0]
    found = pooled_spread(one, two)
    assert found is not None
    expected = sqrt((2 * np.var(one, ddof=1) + np.var(two, ddof=1)) / 3)
    assert found[0] == pytest.approx(expected)
    assert found[1] == 3


@pytest.mark.parametrize("paired", [True, False])
def test_the_power_curve_goes_through_what_is_detectable(paired: bool) -> None:
    for runs, alpha in itertools.product((2, 3, 6, 10, 80), (0.05, 0.05 / 9)):
        least = detectable(0.03, runs, paired, alpha)
        assert least is not None
        assert power_curve(least, 0.03, [runs], paired, alpha) == pytest.approx([0.8], abs=1e-5)
        assert power_curve(-least, 0.03, [runs], paired, alpha) == pytest.approx([0.8], abs=1e-5)
    assert power_curve(0.0, 0.03, [1, 10], paired) == pytest.approx([0, 0.025])


@pytest.mark.parametrize("ratio", [0.3, 1.0, 12.0, 60.0])
def test_more_runs_find_more(ratio: float) -> None:
    """Also where SciPy's noncentral t has no value."""
    curve = power_curve(ratio, 1.0, range(1, 400), paired=True, alpha=0.05 / 7)
    assert curve[0] == 0
    assert (np.diff(curve) >= -1e-9).all()
    assert curve[-1] == pytest.approx(1, abs=1e-3)


def test_a_power_curve_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        power_curve(0.1, 0.0, [2], paired=True)
    with pytest.raises(ValueError, match="expected"):
        power_curve(0.1, 1.0, [0], paired=True)
