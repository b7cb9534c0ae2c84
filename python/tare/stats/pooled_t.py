# SPDX-License-Identifier: Apache-2.0
"""The published test of Kahlhofer et al., "Benchmarking Function Hook Latency": for comparison.

It takes every request for an independent observation, which requests of one run are not; Tare
prints it beside its own verdict and never uses it for one.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite
from tare.stats.two_samples import student_t


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
    found = student_t(one, two)
    if found is None:
        return None
    spread = sqrt((float(one.var(ddof=1)) + float(two.var(ddof=1))) / 2)
    means, medians = (float(of(two) - of(one)) for of in (np.mean, np.median))
    return PooledT(found.statistic, found.p, spread, means, medians, one.size)
