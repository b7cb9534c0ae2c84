# SPDX-License-Identifier: Apache-2.0
"""The tick of the clock that times were read from, where it is no power of ten of nanoseconds."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite

NEAR = 0.1
"""How far from a whole number of ticks a value may be that was rounded once more, in ticks."""
MOST = 0.9
"""Share of the values that must be whole numbers of ticks."""


def tick(values: npt.ArrayLike, counts: npt.ArrayLike) -> float | None:
    """The step between distinct `values` (n,), growing, that occur `counts` (n,) times: in their
    unit.

    It is the distance of a value to its nearest neighbour, the median over all occurrences: values
    far apart, as in a tail, do not count for more than they are. None where values are not whole
    numbers of it, as those of two constant modes are not, and of one value. Raises ValueError for
    numbers that are not finite.
    """
    at, weight = finite(values), finite(counts)
    gaps = np.diff(at)
    if gaps.size == 0:
        return None
    nearest = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    order = np.argsort(nearest, kind="stable")
    passed = np.cumsum(weight[order])
    rough = float(nearest[order][np.searchsorted(passed, passed[-1] / 2)])
    times = np.round(at / rough)
    step = float((weight * times * at).sum() / max(1.0, (weight * times**2).sum()))
    if not step:
        return None
    ticks = at / step
    whole = (np.abs(ticks - np.round(ticks)) <= NEAR) & ((at == 0) | (ticks > 0.5))
    return step if weight[whole].sum() >= MOST * passed[-1] else None
