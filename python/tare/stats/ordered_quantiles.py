# SPDX-License-Identifier: Apache-2.0
"""Exact quantiles of many runs from values that come in ascending order, once."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite

Integers = npt.NDArray[np.integer]


class OrderedQuantiles:
    """Quantiles of type 7 (Hyndman and Fan 1996): linear between the two nearest ranks.

    `sizes` (r,) says how many values each run has in all, none of them 0; `at` (q,) are
    probabilities. Raises ValueError for others.
    """

    def __init__(self, sizes: npt.ArrayLike, at: npt.ArrayLike) -> None:
        self._sizes, self._at = finite(sizes, at_least=1), finite(at)
        if (self._sizes <= 0).any():
            raise ValueError("expected a value in every run")
        if ((self._at < 0) | (self._at > 1)).any():
            raise ValueError("expected probabilities from 0 to 1")
        place = (self._sizes[:, None] - 1) * self._at
        self._share = place - np.floor(place)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, self._sizes[:, None].astype(np.int64) - 1)
        self._ranks = np.stack([below, above])
        self._values = np.full(self._ranks.shape, np.nan)
        self._before = np.zeros(self._sizes.size, dtype=np.int64)

    def add(self, values: npt.NDArray[np.number], runs: Integers, counts: Integers) -> None:
        """Takes the next values, (n,): `values[i]` occurs `counts[i]` times in run `runs[i]`."""
        order = np.argsort(runs, kind="stable")
        ends = np.cumsum(np.bincount(runs, minlength=self._sizes.size))
        for run, here in enumerate(np.split(order, ends[:-1])):
            if not here.size:
                continue
            until = self._before[run] + np.cumsum(counts[here])
            ranks = self._ranks[:, run]
            found = (ranks >= self._before[run]) & (ranks < until[-1])
            places = np.searchsorted(until, ranks[found], side="right")
            self._values[:, run][found] = values[here[places]]
            self._before[run] = until[-1]

    def table(self) -> Array:
        """(r, q), in the unit of the values; NaN where values have not come yet."""
        below, above = self._values
        quantiles: Array = below + (above - below) * self._share
        return quantiles
