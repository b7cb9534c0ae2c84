# SPDX-License-Identifier: Apache-2.0
"""What a number of runs can detect, and how many runs an effect needs."""

from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, nctdtr, nctdtrinc, stdtrit

from tare.stats.arrays import Array, finite

MOST_RUNS = 10_000


def spread_of_differences(differences: npt.ArrayLike) -> tuple[float, int] | None:
    """The standard deviation of block differences (n,) and its n - 1 degrees; None below 2."""
    values = finite(differences)
    return (float(values.std(ddof=1)), values.size - 1) if values.size >= 2 else None


def pooled_spread(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, int] | None:
    """The pooled standard deviation of one run in (n,) and (m,) and its degrees of freedom.

    None when n + m < 3: two single runs say nothing about their spread.
    """
    one, two = finite(first, at_least=1), finite(second, at_least=1)
    freedom = one.size + two.size - 2
    if freedom < 1:
        return None
    squares = ((one - one.mean()) ** 2).sum() + ((two - two.mean()) ** 2).sum()
    return sqrt(float(squares) / freedom), freedom


def upper_spread(spread: float, freedom: int, confidence: float = 0.8) -> float:
    """The upper `confidence` bound of a standard deviation: s sqrt(v / chi2_(1-confidence),v)."""
    return spread * sqrt(freedom / float(chdtri(freedom, confidence)))


def detectable(
    spread: float, runs: int, paired: bool, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """The least true difference that a two-sided t test finds with probability `power`.

    `spread` is the standard deviation of a block difference (paired) or of one run (unpaired, the
    same number of `runs` in both conditions). From the noncentral t distribution; the far tail,
    finding a difference of the wrong sign, is left out. None below two runs.
    """
    if runs < 2:
        return None
    freedom = runs - 1 if paired else 2 * (runs - 1)
    critical = float(stdtrit(freedom, 1 - alpha / 2))
    errors = float(nctdtrinc(freedom, 1 - power, critical))
    return errors * spread * sqrt((1 if paired else 2) / runs)


def power_curve(
    difference: float, spread: float, runs: npt.ArrayLike, paired: bool, alpha: float = 0.05
) -> Array:
    """The chance that a two-sided t test finds a true `difference` with each number of `runs` (k,).

    Finds it on its side of zero; `spread` is as in `detectable`, above 0. With one run it is 0.
    """
    number = finite(runs)
    if not spread > 0 or (number < 1).any():
        raise ValueError("expected a spread above zero and at least one run")
    known = np.maximum(number, 2)
    freedom = known - 1 if paired else 2 * (known - 1)
    errors = abs(difference) / spread * np.sqrt(known / (1 if paired else 2))
    critical = stdtrit(freedom, 1 - alpha / 2)
    found = 1 - nctdtr(freedom, errors, critical)
    # Where chance is certainty to the last digit, SciPy has no value for some noncentralities.
    found = np.where(np.isnan(found), (errors > critical).astype(np.float64), found)
    return np.asarray(np.where(number < 2, 0.0, found))


def runs_for(
    difference: float, spread: float, paired: bool, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """The least runs a condition with which `difference` is detectable; None beyond 10,000.

    Raises ValueError unless `difference` is above zero.
    """
    if not difference > 0:
        raise ValueError(f"expected a difference above zero, found {difference}")

    def enough(runs: int) -> bool:
        least = detectable(spread, runs, paired, alpha, power)
        return least is not None and least <= difference

    if not enough(MOST_RUNS):
        return None
    low, high = 1, MOST_RUNS  # one run is never enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
