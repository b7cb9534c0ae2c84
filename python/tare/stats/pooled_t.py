# SPDX-License-Identifier: Apache-2.0
"""The published test of Kahlhofer et al., "Benchmarking Function Hook Latency": for comparison.

It takes every request for an independent observation, which requests of one run are not; Tare
prints it beside its own verdict and never uses it for one.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from tare.stats.arrays import finite


@dataclass(frozen=True)
class PooledT:
    """Student's t of two equally large samples; differences are second - first, in their unit."""

    t: float
    p: float
    pooled_spread: float
    mean_difference: float
    median_difference: float
    n: int


def pooled_t(first: npt.ArrayLike, second: npt.ArrayLike) -> PooledT | None:
    """t = (x2 - x1) / (sp sqrt(2 / n)) with sp^2 = (s1^2 + s2^2) / 2, 2n - 2 degrees, two-sided.

    Both samples have shape (n,); ValueError when they differ, None below n = 2 or without spread.
    """
    one, two = finite(first), finite(second)
    if one.size != two.size:
        raise ValueError(f"expected equally many requests, found {one.size} and {two.size}")
    n = one.size
    if n < 2:
        return None
    spread = sqrt((float(one.var(ddof=1)) + float(two.var(ddof=1))) / 2)
    if spread == 0:
        return None
    difference = float(two.mean() - one.mean())
    t = difference / (spread * sqrt(2 / n))
    p = 2 * float(stdtr(2 * n - 2, -abs(t)))
    medians = float(np.median(two) - np.median(one))
    return PooledT(t, p, spread, difference, medians, n)
