# SPDX-License-Identifier: Apache-2.0
"""The published test of Kahlhofer et al., "Benchmarking Function Hook Latency": for comparison.

It takes every request for an independent observation, which requests of one run are not; Tare
prints it beside its own verdict and never uses it for a verdict.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite
from tare.stats.two_samples import Moments, pooled_variance, student_t_of


@dataclass(frozen=True)
class PooledT:
    """Student's t of two samples of `n` and `m`; differences are second - first, in their unit."""

    t: float
    p: float
    pooled_spread: float
    mean_difference: float
    median_difference: float
    n: int
    m: int


def pooled_t(first: npt.ArrayLike, second: npt.ArrayLike) -> PooledT | None:
    """t = (x2 - x1) / (sp sqrt(1/n + 1/m)), n + m - 2 degrees, two-sided.

    sp^2 = ((n-1) s1^2 + (m-1) s2^2) / (n + m - 2), Student's. Published for n = m, where it is
    (x2 - x1) / (sp sqrt(2 / n)) with sp^2 = (s1^2 + s2^2) / 2. The samples have shapes (n,) and
    (m,); None where a sample has less than two, or nothing varies.
    """
    first, second = finite(first), finite(second)
    if not (first.size and second.size):
        return None
    medians = float(np.median(second) - np.median(first))
    return pooled_t_of(Moments.of(first), Moments.of(second), medians)


def pooled_t_of(first: Moments, second: Moments, median_difference: float) -> PooledT | None:
    """`pooled_t` of samples of which only these numbers are known."""
    found = student_t_of(first, second)
    if found is None:
        return None
    spread = sqrt(pooled_variance(first, second))
    means = second.mean - first.mean
    return PooledT(
        found.statistic, found.p, spread, means, median_difference, first.size, second.size
    )
