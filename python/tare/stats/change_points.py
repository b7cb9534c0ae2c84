# SPDX-License-Identifier: Apache-2.0
"""Where the mean of a series changes: the segmentation of least cost, found exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite


def change_points(points: npt.ArrayLike, penalty: float, shortest: int = 1) -> list[int]:
    """Where the segments of a series (n,) begin, 0 first, and its end n.

    They have the least sum of squared distances to their means, plus `penalty` for each, of all
    segmentations whose segments have at least `shortest` points: optimal partitioning (Jackson et
    al. 2005), in n steps of at most n sums. Raises ValueError for fewer points than that, NaN and
    infinity.
    """
    values = finite(points, shortest)
    size = values.size
    total = np.concatenate([[0.0], np.cumsum(values - values.mean())])
    lengths = np.arange(size, 0, -1)
    least = np.full(size + 1, np.inf)
    least[0] = 0.0
    begins = np.zeros(size + 1, dtype=np.int64)
    for end in range(shortest, size + 1):
        # The squares themselves add up to the same in all segmentations.
        starts = end - shortest + 1
        sums = total[end] - total[:starts]
        cost = least[:starts] - sums * sums / lengths[size - end : size - end + starts]
        begins[end] = cost.argmin()
        least[end] = cost[begins[end]] + penalty
    found = [size]
    while found[-1]:
        found.append(int(begins[found[-1]]))
    return found[::-1]
