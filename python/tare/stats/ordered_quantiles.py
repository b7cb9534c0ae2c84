# SPDX-License-Identifier: Apache-2.0
"""Exact quantiles of many runs from values that come in ascending order, once."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite
from tare.stats.special import normal_quantile

Integers = npt.NDArray[np.integer]


def has(at: float, size: int) -> bool:
    """Whether the quantile `at` of `size` values lies between them, and not beyond the outermost.

    Beyond, it is the least or the greatest value, which more values move further out.
    """
    rank = (size + 1 / 3) * at + 1 / 3
    return 1 <= rank <= size


class OrderedQuantiles:
    """Quantiles of type 8 (Hyndman and Fan 1996): nearly median-unbiased whatever the distribution.

    So runs of 300 and of 5,000 requests have the same p99, which type 7 puts at p98.7 of the
    shorter run. `sizes` (r,) says how many values each run has in all, none of them 0; `at` (q,)
    are probabilities; `steps` (r,) are the steps to which the values of each run were rounded, 0
    or 1 for none. A quantile is interpolated inside of its step, which lies around the value, as
    a lognormal distribution between the shares of values at both of its ends would have it.
    Raises ValueError for others.
    """

    def __init__(
        self, sizes: npt.ArrayLike, at: npt.ArrayLike, steps: npt.ArrayLike | None = None
    ) -> None:
        self._sizes, self._at = finite(sizes, at_least=1), finite(at)
        self._steps = np.zeros_like(self._sizes) if steps is None else finite(steps)
        if (self._sizes <= 0).any():
            raise ValueError("expected a value in every run")
        if ((self._at < 0) | (self._at > 1)).any():
            raise ValueError("expected probabilities from 0 to 1")
        if self._steps.shape != self._sizes.shape or (self._steps < 0).any():
            raise ValueError("expected a step of at least 0 for every run")
        size = self._sizes[:, None]
        place = np.clip((size + 1 / 3) * self._at + 1 / 3 - 1, 0, size - 1)
        self._share = place - np.floor(place)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, size.astype(np.int64) - 1)
        self._ranks = np.stack([below, above])
        self._values = np.full(self._ranks.shape, np.nan)
        self._before = np.zeros(self._sizes.size, dtype=np.int64)

    def add(self, values: npt.NDArray[np.number], runs: Integers, counts: Integers) -> None:
        """Takes the next values, (n,): `values[i]` occurs `counts[i]` times in run `runs[i]`.

        All that a run has of a value must come at once.
        """
        # A weight is a float: whole numbers of up to 2^53 are exact.
        taken = np.bincount(runs, counts, minlength=self._sizes.size).astype(np.int64)
        ends = self._before + taken
        between = (self._ranks >= self._before[:, None]) & (self._ranks < ends[:, None])
        # Few pieces of many have a rank of a run that is wanted.
        wanted = np.any(between, axis=(0, 2))
        chosen = np.flatnonzero(np.take(wanted, runs))
        order = chosen[np.argsort(runs[chosen], kind="stable")]
        places = np.cumsum(np.bincount(runs[chosen], minlength=self._sizes.size))
        for run, here in enumerate(np.split(order, places[:-1])):
            if not here.size:
                continue
            until = self._before[run] + np.cumsum(counts[here])
            ranks, found = self._ranks[:, run], between[:, run]
            mine = values[here]
            at = np.searchsorted(until, ranks[found], side="right")
            self._values[:, run][found] = (
                self._inside(run, mine, until, at, ranks[found])
                if self._steps[run] > 1
                else mine[at]
            )
        self._before = ends

    def _inside(
        self,
        run: int,
        values: npt.NDArray[np.number],
        until: Integers,
        at: Integers,
        ranks: Integers,
    ) -> Array:
        """The values at `ranks`, which are `values[at]`, inside of their steps."""
        first, last = (np.searchsorted(values, values[at], side) for side in ("left", "right"))
        below = np.where(first > 0, until[first - 1], self._before[run])
        size = self._sizes[run]
        edges = np.clip(np.stack([below, until[last - 1]]) / size, 0.5 / size, 1 - 0.5 / size)
        low, high = normal_quantile(edges)
        share = (normal_quantile((ranks + 0.5) / size) - low) / np.where(
            high > low, high - low, 1.0
        )
        share = np.where(high > low, np.clip(share, 0, 1), 0.5)
        return within_step(values[at], self._steps[run], share)

    def table(self) -> Array:
        """(r, q), in the unit of the values; NaN where values have not come yet."""
        below, above = self._values
        quantiles: Array = below + (above - below) * self._share
        return quantiles


def within_step(values: npt.NDArray[np.number], step: float, share: npt.ArrayLike) -> Array:
    """The point at `share` (n,) of the way, in logarithms, through the steps around `values` (n,).

    The step around 0 has no logarithm: it reaches from 0, and is divided evenly.
    """
    low, high = np.maximum(values - step / 2, 0.0), values + step / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        geometric = np.exp(np.log(low) + (np.log(high) - np.log(low)) * share)
    return np.asarray(np.where(low > 0, geometric, low + (high - low) * share))
