# SPDX-License-Identifier: Apache-2.0
"""Two-sample tests as the literature has them, on SciPy (extra `scipy`) where it does them well.

Each takes every value for an independent observation. Requests of one run are not, so Tare draws
no verdict from these: they are what published methods and other tools compute. p is two-sided.
Values are finite, else ValueError; a test that does not exist for them is None.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from tare.extras import extra
from tare.stats.arrays import Array, finite
from tare.stats.interval import welch_difference
from tare.stats.special import student_cdf


@dataclass(frozen=True)
class Outcome:
    """A statistic and its p, which is known only as a bound where `p_is` says so."""

    statistic: float
    p: float
    p_is: Literal["equal", "at most", "at least"] = "equal"


@dataclass(frozen=True)
class Moments:
    """What Student's t reads of a sample of `size` values; `variance` divides by size - 1."""

    size: int
    mean: float
    variance: float

    @classmethod
    def of(cls, sample: Array) -> "Moments":
        """Of shape (n,)."""
        several = sample.size > 1 and not _constant(sample)
        variance = float(sample.var(ddof=1)) if several else 0.0
        return cls(sample.size, float(sample.mean()) if sample.size else 0.0, variance)


def pooled_variance(first: Moments, second: Moments) -> float:
    """((n - 1) s1^2 + (m - 1) s2^2) / (n + m - 2), for n + m of at least 3."""
    squares = sum(max(of.size - 1, 0) * of.variance for of in (first, second))
    return squares / (first.size + second.size - 2)


def student_t_of(first: Moments, second: Moments) -> Outcome | None:
    """`student_t` of samples of which only these numbers are known."""
    freedom = first.size + second.size - 2
    if min(first.size, second.size) < 1 or freedom < 1 or not (first.variance or second.variance):
        return None
    t = (second.mean - first.mean) / sqrt(
        pooled_variance(first, second) * (1 / first.size + 1 / second.size)
    )
    return Outcome(t, 2 * student_cdf(freedom, -abs(t)))


def student_t(first: npt.ArrayLike, second: npt.ArrayLike) -> Outcome | None:
    """Student's (1908) t of samples (n,), (m,) with one variance: above zero where second is.

    t = (x2 - x1) / (sp sqrt(1/n + 1/m)), n + m - 2 degrees; None below n + m = 3, an empty sample,
    or no spread.
    """
    return student_t_of(Moments.of(finite(first)), Moments.of(finite(second)))


def welch_t(first: npt.ArrayLike, second: npt.ArrayLike) -> Outcome | None:
    """Welch's (1947) t of samples (n,), (m,) with a variance each: above zero where second is.

    None where a sample has fewer than two values, or neither has spread.
    """
    found = welch_difference(first, second)
    if found is None or (_constant(finite(first)) and _constant(finite(second))):
        return None
    return Outcome(found.estimate / found.standard_error, found.p)


def mann_whitney(first: npt.ArrayLike, second: npt.ArrayLike) -> Outcome | None:
    """Mann and Whitney's (1947) U of `second`: pairs in which it is greater, ties count a half.

    p is exact where one sample has at most 8 values and there are no ties, else normal with
    corrections for ties and continuity. None where all values are equal or a sample is empty.
    """
    first, second = finite(first), finite(second)
    if not (first.size and second.size) or _constant(np.concatenate([first, second])):
        return None
    found = _scipy_stats().mannwhitneyu(second, first)
    return Outcome(float(found.statistic), float(found.pvalue))


def kolmogorov_smirnov(first: npt.ArrayLike, second: npt.ArrayLike) -> Outcome | None:
    """max |F - G| of the distribution functions (Smirnov 1939). None where a sample is empty.

    p is exact up to 10,000 values a sample, else asymptotic.
    """
    first, second = finite(first), finite(second)
    if not (first.size and second.size):
        return None
    with catch_warnings():
        # Where the exact p cannot be had, SciPy says that it takes the asymptotic p.
        simplefilter("ignore", RuntimeWarning)
        found = _scipy_stats().ks_2samp(first, second)
    return Outcome(float(found.statistic), float(found.pvalue))


def anderson_darling(first: npt.ArrayLike, second: npt.ArrayLike) -> Outcome | None:
    """The k-sample statistic of midranks, standardised (Scholz and Stephens 1987, equation 7).

    Below zero where samples are closer than chance has them. Its p is interpolated in a table that
    ends at 0.001 and 0.25: beyond, it is a bound. None where all values are equal or a sample is
    empty.
    """
    first, second = finite(first), finite(second)
    if not (first.size and second.size) or _constant(np.concatenate([first, second])):
        return None
    with catch_warnings():
        # SciPy says in a warning that p is at an end of its table.
        simplefilter("ignore", UserWarning)
        found = _scipy_stats().anderson_ksamp([first, second], variant="midrank")
    p = float(found.pvalue)
    return Outcome(
        float(found.statistic),
        p,
        "at most" if p <= 0.001 else "at least" if p >= 0.25 else "equal",
    )


def cramer_von_mises(first: npt.ArrayLike, second: npt.ArrayLike) -> Outcome | None:
    """T = nm / (n + m)^2 of the sum of (F - G)^2 over all values (Anderson 1962).

    p is exact up to 20 values a sample, else asymptotic. None where a sample has fewer than two.
    """
    first, second = finite(first), finite(second)
    if min(first.size, second.size) < 2:
        return None
    found = _scipy_stats().cramervonmises_2samp(first, second)
    return Outcome(float(found.statistic), float(found.pvalue))


def wasserstein_of_logs(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """The area between the distribution functions of logs: the mean ratio, as a log, that it takes
    to turn one sample into the other. None where a sample is empty.

    Raises ValueError for values that are not above zero.
    """
    first, second = finite(first), finite(second)
    if (first <= 0).any() or (second <= 0).any():
        raise ValueError("expected values above zero, which have a logarithm")
    if not (first.size and second.size):
        return None
    return float(_scipy_stats().wasserstein_distance(np.log(first), np.log(second)))


def _scipy_stats() -> Any:
    """`scipy.stats`. Raises InputError where it is not installed."""
    return extra("scipy", "scipy.stats", "published two-sample tests")


def _constant(values: Array) -> bool:
    return bool((values == values[0]).all())
