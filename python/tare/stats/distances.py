# SPDX-License-Identifier: Apache-2.0
"""How far the distributions of runs lie apart, between all pairs of them in one pass.

Everything follows from how often each value occurs in each run, in ascending order of values:
with F the empirical distribution of a run, n its size, N = n + m of a pair, d = F_i - F_j.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite
from tare.stats.kernel import kernel
from tare.stats.special import digamma, trigamma

Integers = npt.NDArray[np.integer]


class Pairs:
    """Statistics between all pairs of r runs whose values come in ascending order.

    `sizes` (r,) says how many values each run has in all, none of them 0: ValueError. `kinds`
    are the statistics wanted, of `KINDS`. The sums are made by crates/distances: a value costs
    one step over the runs.
    """

    def __init__(self, sizes: npt.ArrayLike, kinds: Sequence[str] = ("ks", "ad")) -> None:
        self.sizes = np.ascontiguousarray(finite(sizes, at_least=1))
        if (self.sizes <= 0).any():
            raise ValueError("expected a value in every run")
        self._until, self._since = np.zeros_like(self.sizes), np.zeros_like(self.sizes)
        self._found = {kind: np.zeros((self.sizes.size, self.sizes.size)) for kind in kinds}

    def add(self, values: npt.NDArray[np.number], runs: Integers, counts: Integers) -> None:
        """Takes the next values: arrays of shape (n,), in ascending order.

        Values do not descend, nor reach back to those taken before. The value `values[i]` occurs
        `counts[i]` times in the run with index `runs[i]`.
        """
        if values.size and values[0] <= 0 and "w1" in self._found:
            raise ValueError(f"expected positive values, found {values[0]}")
        state = self.sizes, self._until, self._since
        matrices = (self._found.get(kind) for kind in KINDS)
        taken = (
            np.ascontiguousarray(values, np.float64),
            np.ascontiguousarray(runs, np.uint16),
            np.ascontiguousarray(counts, np.int64),
        )
        if not values.size == runs.size == counts.size:
            raise ValueError(f"{values.size} values, {runs.size} runs, {counts.size} counts")
        unknown = kernel()(
            self.sizes.size,
            *(array.ctypes.data for array in state),
            *(None if matrix is None else matrix.ctypes.data for matrix in matrices),
            values.size,
            *(array.ctypes.data for array in taken),
        )
        if unknown:
            raise ValueError(f"expected runs from 0 to {self.sizes.size - 1}")

    def matrix(self, kind: str) -> Array:
        """One statistic between all runs, (r, r), symmetric; 0 on the diagonal."""
        found = KINDS[kind](self._found[kind], self.sizes)
        np.fill_diagonal(found, 0.0)
        return found

    def matrices(self) -> dict[str, Array]:
        """All statistics that were wanted."""
        return {kind: self.matrix(kind) for kind in self._found}


def between(runs: Sequence[npt.ArrayLike], kinds: Sequence[str] = ("ks", "ad")) -> dict[str, Array]:
    """Statistics between runs that are in memory, each of shape (n,), n at least 1.

    Raises ValueError for an empty run, NaN or infinity.
    """
    tables = [_counted(np.sort(finite(run, at_least=1))) for run in runs]
    values, counts = (np.concatenate(column) for column in zip(*tables, strict=True))
    index = np.repeat(np.arange(len(tables), dtype=np.uint16), [value.size for value, _ in tables])
    # Quick on parts that are in order already.
    order = np.argsort(values, kind="stable")
    pairs = Pairs([int(count.sum()) for _, count in tables], kinds)
    pairs.add(values[order], index[order], counts[order])
    return pairs.matrices()


def kinds_from(least: float) -> tuple[str, ...]:
    """The statistics that there are of values from `least` on: not all have a logarithm."""
    return tuple(kind for kind in KINDS if kind != "w1" or least > 0)


def _counted(ordered: Array) -> tuple[Array, npt.NDArray[np.int32]]:
    """Each value of an ordered run once, and how often it is there."""
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[first], np.diff(np.append(first, ordered.size)).astype(np.int32)


def _greater(found: Array, _sizes: Array) -> Array:
    return np.maximum(found, found.T)


def _together(found: Array, _sizes: Array) -> Array:
    return found + found.T


def _criterion(found: Array, sizes: Array) -> Array:
    """Anderson (1962): n m / N^2 times the sum."""
    pair = sizes[:, None] + sizes
    statistic: Array = sizes[:, None] * sizes / pair**2 * (found + found.T)
    return statistic


def _standardised(found: Array, sizes: Array) -> Array:
    """Scholz and Stephens (1987), equations 7 and 4 for two samples: (A^2 - 1) / sigma."""
    pair = sizes[:, None] + sizes
    statistic = sizes[:, None] * sizes * (found + found.T) * (pair - 1) / pair
    harmonic = digamma(pair) - digamma(1)
    # The sum over all i < j < N of 1 / ((N - i) j), in closed form.
    g = harmonic**2 - (harmonic + 1 / pair) ** 2 + np.pi**2 / 6 - trigamma(pair + 1)
    inverse = 1 / sizes[:, None] + 1 / sizes
    a = 4 * g - 6 + (10 - 6 * g) * inverse
    b = 12 * g + 8 * harmonic - 22 + (2 * g - 14 * harmonic - 4) * inverse
    c = 36 * harmonic + 4 + (2 * harmonic - 6) * inverse
    below = (pair - 1) * (pair - 2) * (pair - 3)
    # Fewer than four values have no standard deviation.
    variance = np.where(below > 0, a * pair**3 + b * pair**2 + c * pair + 24, np.nan)
    standard: Array = (statistic - 1) / np.sqrt(variance / np.maximum(below, 1))
    return standard


KINDS: dict[str, Callable[[Array, Array], Array]] = {
    "ks": _greater,
    "ad": _standardised,
    "cvm": _criterion,
    "w1": _together,
}
"""Kolmogorov and Smirnov's greatest |d|; Anderson and Darling's statistic of midranks,
standardised, NaN for a pair of fewer than four values; Cramer and von Mises' T by its definition,
which SciPy's is without ties; Wasserstein's distance of the logarithms of positive values."""
