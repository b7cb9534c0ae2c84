# SPDX-License-Identifier: Apache-2.0
"""What a number of runs can show, by the rule that judges them: simulated, the draws always alike.

A difference is found where the p-value of exchanged runs is at most alpha, Student's interval
leaves zero out and is not wholly inside the threshold. For each of some normal experiments the
least true difference that would be found in it is computed; chances are shares of experiments. The
spread of the runs at hand is itself an estimate, so it is drawn anew for each, too (Fisher's
fiducial distribution): averaged over pilots, what is stated for 80 % happens in 80 % (tested).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite
from tare.stats.permutation import least_p
from tare.stats.special import chi_squared_quantile, student_quantile

DRAWS = 2_000
MOST_RUNS = 10_000
EXACT = 8
"""Most blocks whose sign patterns are all looked at; with more, the t test is as good."""
FINE = 1e6
"""Levels below alpha from which on exchanges reach alpha itself."""
_STEPS = 16
"""Halvings of a range of differences."""


def spread_of_differences(differences: npt.ArrayLike) -> tuple[float, int] | None:
    """The standard deviation of block differences (n,) and its n - 1 degrees; None below 2."""
    values = finite(differences)
    return (float(values.std(ddof=1)), values.size - 1) if values.size >= 2 else None


def pooled_spread(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, int] | None:
    """The pooled standard deviation of one run in (n,) and (m,) and its degrees of freedom.

    None when n + m < 3: two single runs say nothing about their spread.
    """
    first, second = finite(first, at_least=1), finite(second, at_least=1)
    freedom = first.size + second.size - 2
    if freedom < 1:
        return None
    squares = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
    return sqrt(float(squares) / freedom), freedom


def upper_spread(spread: float, freedom: int, confidence: float = 0.8) -> float:
    """The upper `confidence` bound of a standard deviation: s sqrt(v / chi2_(1-confidence),v)."""
    return spread * sqrt(freedom / chi_squared_quantile(freedom, confidence))


@dataclass(frozen=True)
class Design:
    """How runs were measured and are judged; differences are logs.

    `spread` is the standard deviation of a block's difference (paired) or of one run, estimated
    with `freedom` degrees. `systematic` is what an interval is widened by on either side.
    `family` is how many times as large a difference must be because others are judged with it.
    """

    spread: float
    freedom: int
    paired: bool
    alpha: float = 0.05
    threshold: float = 0.0
    systematic: float = 0.0
    family: float = 1.0

    def detectable(self, runs: int, share: float = 0.8) -> float | None:
        """The least true difference that is found in `share` of experiments of so many runs.

        None where no difference is: of too few runs no p-value is small enough.
        """
        least = self._least(runs)
        if least is None:
            return None
        return float(np.quantile(least, share, method="inverted_cdf"))

    def chance(self, difference: float, runs: int) -> float:
        """The share of experiments in which a true `difference` is found on its side of zero."""
        least = self._least(runs)
        return 0.0 if least is None else float(np.mean(least <= abs(difference)))

    def runs_to_see(self, difference: float, share: float = 0.8) -> int | None:
        """The fewest runs per condition that find a true `difference`; None beyond 10,000."""
        return _fewest(lambda runs: self.chance(difference, runs) >= share)

    def runs_to_show(self, difference: float, share: float = 0.8) -> int | None:
        """The fewest runs that show a true `difference` to be inside the threshold, likewise."""
        room = self.threshold - self.systematic

        def enough(runs: int) -> bool:
            if runs < 2:
                return False
            drawn = _normal(runs, self.paired, self.freedom)
            error = self.spread * drawn.error
            half = student_quantile(drawn.freedom, 1 - self.alpha) * error
            shown = np.abs(difference + self.spread * drawn.mean) + half < room
            return bool(shown.mean() >= share)

        return _fewest(enough)

    def _least(self, runs: int) -> Array | None:
        """Of each drawn experiment, the least true difference that is found in it."""
        found = _significant(runs, self.paired, self.alpha, self.freedom)
        if found is None:
            return None
        drawn = _normal(runs, self.paired, self.freedom)
        half = self.spread * student_quantile(drawn.freedom, 0.975) * drawn.error
        mean = self.spread * drawn.mean
        sure = half - mean + self.systematic
        beyond = self.threshold - half - mean - self.systematic
        return np.asarray(np.max([self.family * self.spread * found, sure, beyond], axis=0))


def family_factor(
    differences: npt.ArrayLike, place: int, alpha: float = 0.05, seed: int = 0
) -> float:
    """How many times as large a difference must be because others are judged together with it.

    Of the comparison `place` of k, from differences (n, k) in n blocks, for `Design.family`: the
    ratio of what is found in 80 % of experiments by `step_down.paired` to what is found alone.
    """
    values = np.asarray(differences, dtype=np.float64)
    runs, count = values.shape
    if count == 1:
        return 1.0
    draws = int(np.clip(1_600 // count, 50, 200))
    generator = np.random.default_rng(seed)
    centred = values - values.mean(axis=0)
    drawn = generator.standard_normal((draws, runs, runs)) @ centred
    drawn /= np.maximum(drawn.std(axis=1, ddof=1, keepdims=True), 1e-300)
    signs = _patterns(runs)
    others = np.delete(drawn, place, axis=2)
    greatest = _greatest(others, signs)
    own = drawn[:, :, place]
    together = _least_significant(own, signs, alpha, greatest)
    alone = _least_significant(own, signs, alpha)
    if together is None or alone is None:
        return 1.0
    ratio = np.quantile(together, 0.8) / np.quantile(alone, 0.8)
    return max(1.0, float(ratio))


def _greatest(drawn: Array, signs: Array) -> Array:
    """max |t| over comparisons of drawn blocks (d, n, k) by sign pattern: (d, p)."""
    runs = drawn.shape[1]
    greatest = np.zeros((len(drawn), len(signs)))
    for place in range(drawn.shape[2]):
        blocks = drawn[:, :, place]
        total = blocks @ signs.T
        spread = ((blocks**2).sum(axis=1)[:, None] - total**2 / runs) / (runs - 1)
        t = np.abs(total) / np.sqrt(runs * np.maximum(spread, 1e-12))
        np.maximum(greatest, t, out=greatest)
    return greatest


@dataclass(frozen=True, eq=False)
class _Normal:
    """Drawn experiments in units of a pilot's spread: mean differences, errors (DRAWS,)."""

    mean: Array
    error: Array
    freedom: int


@lru_cache(maxsize=256)
def _normal(runs: int, paired: bool, pilot: int) -> _Normal:
    freedom = runs - 1 if paired else 2 * (runs - 1)
    if paired and runs <= EXACT:
        values = _drawn(runs, pilot)
        return _Normal(values.mean(axis=1), values.std(axis=1, ddof=1) / sqrt(runs), freedom)
    generator, scale = _scaled(runs, pilot)
    error = scale * sqrt((1 if paired else 2) / runs)
    mean = generator.standard_normal(DRAWS) * error
    return _Normal(mean, error * np.sqrt(generator.chisquare(freedom, DRAWS) / freedom), freedom)


def _scaled(runs: int, pilot: int) -> "tuple[np.random.Generator, Array]":
    """A generator, and true spreads (DRAWS,) as a pilot with so many degrees leaves them open."""
    generator = np.random.default_rng(runs)
    return generator, np.sqrt(pilot / generator.chisquare(pilot, DRAWS))


def _drawn(runs: int, pilot: int) -> Array:
    """Normal differences of blocks (DRAWS, runs)."""
    generator, scale = _scaled(runs, pilot)
    return np.asarray(generator.standard_normal((DRAWS, runs)) * scale[:, None])


@lru_cache(maxsize=256)
def _significant(runs: int, paired: bool, alpha: float, pilot: int) -> Array | None:
    """Of each drawn experiment, the least difference whose p-value is at most alpha."""
    least = least_p(runs, paired)
    if runs < 2 or least > alpha:
        return None
    if paired and runs <= EXACT:
        return _least_significant(_drawn(runs, pilot), _patterns(runs), alpha)
    # Exchanges reach multiples of their least p only.
    level = np.floor(alpha / least) * least if least > alpha / FINE else alpha
    drawn = _normal(runs, paired, pilot)
    return np.asarray(student_quantile(drawn.freedom, 1 - level / 2) * drawn.error - drawn.mean)


def _least_significant(
    drawn: Array, signs: Array, alpha: float, others: Array | None = None
) -> Array | None:
    """The least difference with which drawn blocks (d, n) are significant by sign flips (p, n).

    `others` (d, p) are the greatest statistics of comparisons beside it. Both signs of a pattern
    count as one; the first is the identity.
    """
    runs = drawn.shape[1]
    allowed = int(np.floor(alpha * len(signs) * (1 + 1e-9)))
    if allowed < 1:
        return None
    totals, sizes = drawn @ signs.T, signs.sum(axis=1)
    squares = (drawn**2).sum(axis=1)
    low, high = -np.abs(drawn).max(axis=1), np.full(len(drawn), 1e3) * drawn.std(axis=1)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        mean = drawn.mean(axis=1) + middle
        hits = np.abs(totals + middle[:, None] * sizes) >= (runs * mean)[:, None] * (1 - 1e-9)
        if others is not None:
            rest = squares + 2 * middle * totals[:, 0] + runs * middle**2 - runs * mean**2
            t = mean / np.sqrt(np.maximum(rest, 1e-300) / (runs - 1) / runs)
            hits |= others >= t[:, None]
        found = (hits.sum(axis=1) <= allowed) & (mean > 0)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.asarray(high)


def _patterns(runs: int) -> Array:
    """Signs (p, runs), all 2^(runs - 1) or as many as are enough; the first flips nothing."""
    if runs <= EXACT:
        codes = np.arange(2 ** (runs - 1))[:, None]
        return np.asarray(np.where((codes >> np.arange(runs)) & 1, -1.0, 1.0))
    drawn = np.random.default_rng(runs).integers(0, 2, (2**EXACT, runs)) * 2.0 - 1.0
    drawn[0] = 1.0
    return np.asarray(drawn)


def _fewest(enough: Callable[[int], bool]) -> int | None:
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_RUNS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
