# SPDX-License-Identifier: Apache-2.0
"""How often one condition is above the other: effects without a unit."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite


def vargha_delaney(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """A = P(second > first) + P(equal) / 2 of samples (n,), (m,) (Vargha and Delaney 2000).

    0.5 where neither is greater; O((n + m) log n). None where a sample is empty.
    """
    first, second = np.sort(finite(first)), finite(second)
    if not (first.size and second.size):
        return None
    below = np.searchsorted(first, second, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(first, second, side="right").sum(dtype=np.float64)
    return float((below + not_above) / 2 / first.size / second.size)


def cliffs_delta(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """P(second > first) - P(second < first) (Cliff 1993) = 2A - 1: from -1 to 1."""
    superiority = vargha_delaney(first, second)
    return None if superiority is None else 2 * superiority - 1
