# SPDX-License-Identifier: Apache-2.0
"""Whether a series rises or falls, and by how much a step."""

from dataclasses import dataclass
from math import erfc, factorial, sqrt

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite

LEAST = 8
EXACT = 33
"""Values of which all orders are counted."""


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
    series = finite(values)
    if series.size < LEAST:
        return None
    if (series == series[0]).all():
        return Trend(0.0, 1.0)
    before, after = np.triu_indices(series.size, 1)
    rises = series[after] - series[before]
    return Trend(float(np.median(rises / (after - before))), _p(series, rises))


def _p(series: Array, rises: Array) -> float:
    """Exact where no values are equal and there are at most 33, else normal."""
    size = series.size
    _, ties = np.unique(series, return_counts=True)
    falling = int((rises < 0).sum())
    if ties.max() == 1 and size <= EXACT:
        return _exact_p(size, min(falling, rises.size - falling))
    difference = int((rises > 0).sum()) - falling
    # Kendall (1970), chapter 5: ties make the variance smaller.
    variance = (_fifth(size) - sum(map(_fifth, ties.tolist()))) / 18
    return erfc(abs(difference) / sqrt(variance) / sqrt(2))


def _exact_p(size: int, pairs: int) -> float:
    """Twice the share of orders in which at most so many `pairs` fall, at most 1."""
    # How many orders have 0, 1 ... falling pairs: each value more adds 0 to its place of them.
    orders = [1]
    for place in range(1, size):
        grown = [0] * (len(orders) + place)
        for more in range(place + 1):
            for fewer, count in enumerate(orders):
                grown[fewer + more] += count
        orders = grown
    return min(1.0, 2 * sum(orders[: pairs + 1]) / factorial(size))


def _fifth(size: int) -> int:
    return size * (size - 1) * (2 * size + 5)
