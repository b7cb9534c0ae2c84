# SPDX-License-Identifier: Apache-2.0
"""Whether a series rises or falls, and by how much a step."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite

LEAST = 8


@dataclass(frozen=True)
class Trend:
    """`slope` in units of the values a step; `p` of there being none, two-sided."""

    slope: float
    p: float


def trend(values: npt.ArrayLike) -> Trend | None:
    """The median of all pairwise slopes (Theil 1950, Sen 1968) of (n,) values, in their order.

    Its p is that of Mann's (1945) test, Kendall's tau against the order; ties are allowed for.
    None below eight values, which say too little. O(n^2) in memory.
    """
    from scipy.stats import kendalltau, theilslopes

    series = finite(values)
    if series.size < LEAST:
        return None
    if (series == series[0]).all():
        return Trend(0.0, 1.0)
    place = np.arange(series.size)
    return Trend(float(theilslopes(series, place).slope), float(kendalltau(place, series).pvalue))
