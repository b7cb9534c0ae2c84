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
    (m,); None where one has less than two, or nothing varies.
    """
    one, two = finite(first), finite(second)
    found = student_t(one, two)
    if found is None:
        return None
    squares = sum(float(side.var(ddof=1)) * (side.size - 1) for side in (one, two))
    spread = sqrt(squares / (one.size + two.size - 2))
    means, medians = (float(of(two) - of(one)) for of in (np.mean, np.median))
    return PooledT(found.statistic, found.p, spread, means, medians, one.size, two.size)
