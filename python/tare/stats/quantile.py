# SPDX-License-Identifier: Apache-2.0
"""Quantiles of samples and of counted samples, and when there are enough to speak of one."""

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from tare.stats.arrays import Array, finite

LEAST_BEYOND = 10
"""Independent requests that must lie beyond a quantile. The estimate weighs ranks within about
three times sqrt(m) of the m beyond it: from m = 9 on these are all in the sample, with fewer the
estimate is a part of its greatest value. With 10 the true p99 lies between the estimated p98.4
and p99.6 in 95 % of runs."""
LEAST_BEYOND_FAR = 30
"""The same beyond p99. Where a tail falls off as 1/x^2 a quantile with m beyond it has a relative
standard error of 1 / (2 sqrt(m)): 9 %, where 10 would leave 16 %."""
_FAR = 0.01


def harrell_davis(
    values: npt.ArrayLike, at: npt.ArrayLike, counts: npt.ArrayLike | None = None
) -> Array:
    """The quantiles of `values` (n,), in any order, at probabilities `at` (k,), both exclusive.

    Harrell and Davis (1982): every value weighs what the beta distribution with parameters
    (N + 1) q and (N + 1) (1 - q) gives to its ranks. With `counts` (n,) a value stands for so many
    samples, N in all, as in a histogram; else for one. Raises ValueError for no values,
    probabilities outside of (0, 1) and counts that are negative or all 0.
    """
    asked = finite(at)
    if ((asked <= 0) | (asked >= 1)).any():
        raise ValueError("expected probabilities between 0 and 1")
    found = finite(values, at_least=1)
    times = np.ones(found.size) if counts is None else finite(counts)
    if times.size != found.size or (times < 0).any() or not times.any():
        raise ValueError("expected a count of at least 0 for every value, not all of them 0")
    order = np.argsort(found)
    ranks = np.concatenate([[0.0], np.cumsum(times[order])])
    total = ranks[-1]
    below = [betainc((total + 1) * q, (total + 1) * (1 - q), ranks / total) for q in asked]
    return np.array([np.diff(one) @ found[order] for one in below])


def supported(effective: float, at: float) -> bool:
    """Whether `effective` independent requests (see `effective_size`) speak of the quantile `at`.

    At least 10 of them must lie beyond it, on its thinner side; 30 above p99 and below p1.
    """
    thinner = min(at, 1 - at)
    # 1 - 0.99 is a little more than 0.01.
    far = thinner < _FAR * (1 - 1e-9)
    return effective * thinner >= (LEAST_BEYOND_FAR if far else LEAST_BEYOND) * (1 - 1e-9)
