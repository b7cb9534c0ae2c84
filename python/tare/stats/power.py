# SPDX-License-Identifier: Apache-2.0
"""What a number of runs can detect, and how many runs an effect needs."""

from math import sqrt

import numpy.typing as npt
from scipy.special import chdtri, nctdtrinc, stdtrit

from tare.stats.arrays import finite

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
