# SPDX-License-Identifier: Apache-2.0
"""Which stretches of load were disturbed from outside, told without looking at latencies."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite

SPREADS = 6.0
FLOOR = 0.05


def clearly_above(shares: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which of the waiting shares (n,) lie clearly above their own typical level.

    Clearly: by more than six times the median absolute deviation, and by more than 0.05 of the
    time, since where nothing ever waits any wait would be six deviations away.
    """
    values = finite(shares)
    if values.size == 0:
        return np.zeros(0, dtype=np.bool_)
    typical = float(np.median(values))
    deviation = float(np.median(np.abs(values - typical)))
    return values > typical + max(SPREADS * deviation, FLOOR)


def quieter_half(
    disturbed: npt.NDArray[np.bool_], *severity: npt.ArrayLike
) -> npt.NDArray[np.bool_]:
    """`disturbed` (n,), with no more than half of it true: the worst by `severity` stay so.

    `severity` are arrays (n,), the most important first; ties go to the earlier place.
    """
    most = disturbed.size // 2
    if int(disturbed.sum()) <= most:
        return disturbed
    keys = [-finite(values) for values in reversed(severity)]
    order = np.lexsort([*keys, ~disturbed])
    kept = np.zeros_like(disturbed)
    kept[order[:most]] = True
    return kept & disturbed
