# SPDX-License-Identifier: Apache-2.0
"""Where a run's warm-up ends."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite


def mser(batches: npt.ArrayLike) -> int | None:
    """How many first batches, of means (k,), to drop, by the rule of MSER-m (White 1997).

    The cut d minimises the squared standard error of the mean of what remains, s_d^2 / (k - d).
    Batches of m requests make it MSER-m, of five MSER-5. None when the best cut is past half of
    the series or there are fewer than 10 batches: no steady state was seen.
    """
    values = finite(batches)
    count = values.size
    if count < 10:
        return None
    # From a batch of the end: sums over a tail that is constant are 0 exactly, and of its cuts the
    # first is taken. From the mean, rounding would choose among them.
    values = values - values[-1]
    remaining = np.arange(count, 0, -1)
    total = np.cumsum(values[::-1])[::-1]
    squares = np.cumsum((values**2)[::-1])[::-1]
    error = (squares - total**2 / remaining) / remaining.astype(np.float64) ** 2
    # The last few batches are nearly equal by chance, so a cut in the last tenth is not offered.
    cut = int(np.argmin(error[: count - count // 10]))
    return cut if cut <= count // 2 else None
