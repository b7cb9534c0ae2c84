# SPDX-License-Identifier: Apache-2.0
"""How far the distributions of runs lie apart, between all pairs of them in one pass.

Everything follows from how often each value occurs in each run, in ascending order of values:
with F the empirical distribution of a run, n its size, N = n + m of a pair, d = F_i - F_j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, zeta

from tare.stats.arrays import Array, finite

Integers = npt.NDArray[np.integer]

CELLS = 200_000
"""Values times runs that are looked at at once: what stays in a core's own cache."""


@dataclass(frozen=True)
class Block:
    """Some neighbouring values (k,), and how often each occurs in each of r runs."""

    values: npt.NDArray[np.number]
    counts: Array
    """(r, k)"""
    until: Array
    """(r, k): how many values of each run are no greater."""
    before: Array
    """(r,): how many values of each run are less than all of these."""
    sizes: Array
    """(r,)"""


class Pairs:
    """Statistics between all pairs of r runs whose values come in ascending order.

    `sizes` (r,) says how many values each run has in all, none of them 0: ValueError. `kinds`
    are the statistics wanted, of `KINDS`.
    """

    def __init__(self, sizes: npt.ArrayLike, kinds: Sequence[str] = ("ks", "ad")) -> None:
        self.sizes = finite(sizes, at_least=1)
        if (self.sizes <= 0).any():
            raise ValueError("expected a value in every run")
        self._before = np.zeros_like(self.sizes)
        self._last: float | None = None
        self._found = {kind: np.zeros((self.sizes.size, self.sizes.size)) for kind in kinds}

    def add(self, values: npt.NDArray[np.number], runs: Integers, counts: Integers) -> None:
        """Takes the next values: arrays of shape (n,), in ascending order.

        Values do not descend, nor reach back to those taken before. The value `values[i]` occurs
        `counts[i]` times in the run with index `runs[i]`, which is said once.
        """
        for block in self._blocks(values, runs, counts):
            for kind, found in self._found.items():
                KINDS[kind].add(found, block, self._last)
            self._before = block.until[:, -1]
            self._last = float(block.values[-1])

    def skip(self, values: npt.NDArray[np.number], runs: Integers, counts: Integers) -> None:
        """Leaves the next values to another one, with which this one is merged."""
        if values.size:
            self._before = self._before + np.bincount(runs, counts, self.sizes.size)
            self._last = float(values[-1])

    def merge(self, other: Pairs) -> None:
        """Takes what another one found in the values that this one skipped."""
        for kind, found in self._found.items():
            KINDS[kind].merge(found, other._found[kind], out=found)

    def matrix(self, kind: str) -> Array:
        """One statistic between all runs, (r, r), symmetric; 0 on the diagonal."""
        found = KINDS[kind].finish(self._found[kind], self.sizes)
        np.fill_diagonal(found, 0.0)
        return found

    def matrices(self) -> dict[str, Array]:
        """All statistics that were wanted."""
        return {kind: self.matrix(kind) for kind in self._found}

    def _blocks(
        self, values: npt.NDArray[np.number], runs: Integers, counts: Integers
    ) -> Iterator[Block]:
        if not values.size:
            return
        first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        step = max(1, CELLS // self.sizes.size)
        for start in range(0, first.size, step):
            begins = first[start : start + step]
            end = first[start + step] if start + step < first.size else values.size
            here = slice(begins[0], end)
            place = np.repeat(np.arange(begins.size), np.diff(np.append(begins, end)))
            table = np.zeros((self.sizes.size, begins.size))
            table[runs[here], place] = counts[here]
            until = table.cumsum(axis=1)
            until += self._before[:, None]
            yield Block(values[begins], table, until, self._before, self.sizes)


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


def _kolmogorov_smirnov(found: Array, block: Block, _last: float | None) -> None:
    """The greatest |d|. Pairs that cannot get further apart in here are not looked at: F rises
    from its value before the block to that at its end."""
    low, high = block.before / block.sizes, block.until[:, -1] / block.sizes
    reach = high[:, None] - low
    wanted = np.triu(np.maximum(reach, reach.T) > found, 1)
    share = block.until / block.sizes[:, None]
    for run in np.flatnonzero(wanted.any(axis=1)):
        others = np.flatnonzero(wanted[run])
        apart = share[others]
        apart -= share[run]
        found[run, others] = np.maximum(found[run, others], np.abs(apart, out=apart).max(axis=1))


def _anderson_darling(found: Array, block: Block, _last: float | None) -> None:
    """Adds sum of l d^2 / (B (N - B) - N l / 4) with midranks: B is the rank in the pair, l how
    often a value occurs in it. Only the values of a run count for it, the rest of the pair's come
    from the other run."""
    middle = block.until - block.counts / 2
    for run, counts in enumerate(block.counts):
        places = np.flatnonzero(counts)
        here, count = middle.take(places, axis=1), block.counts.take(places, axis=1)
        own, weight = here[run].copy(), count[run].copy()
        of_pair = (block.sizes + block.sizes[run])[:, None]
        apart = here / block.sizes[:, None]
        apart -= own / block.sizes[run]
        apart *= apart
        here += own
        count += weight
        count *= of_pair / 4
        spread = of_pair - here
        spread *= here
        spread -= count
        # A pair of one value has 0 / 0.
        np.maximum(spread, 0.25, out=spread)
        apart /= spread
        found[run] += apart @ weight


def _cramer_von_mises(found: Array, block: Block, _last: float | None) -> None:
    """Adds sum of l d^2, each run's share of l by itself."""
    share = block.until / block.sizes[:, None]
    for run, counts in enumerate(block.counts):
        places = np.flatnonzero(counts)
        apart = share.take(places, axis=1)
        apart -= apart[run].copy()
        apart *= apart
        found[run] += apart @ counts[places]


def _wasserstein(found: Array, block: Block, last: float | None) -> None:
    """Adds the integral of |d| over the logarithm of the value."""
    if block.values[0] <= 0:
        raise ValueError(f"expected positive values, found {block.values[0]}")
    logs = np.log(block.values)
    if last is not None:
        low = block.before / block.sizes
        found += np.tril(np.abs(low[:, None] - low)) * (logs[0] - np.log(last))
    share = block.until[:, :-1] / block.sizes[:, None]
    for run in range(1, block.sizes.size):
        apart = share[:run] - share[run]
        found[run, :run] += np.abs(apart, out=apart) @ np.diff(logs)


def _symmetric(found: Array, _sizes: Array) -> Array:
    return np.maximum(found, found.T)


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
    g = harmonic**2 - (harmonic + 1 / pair) ** 2 + np.pi**2 / 6 - zeta(2, pair + 1)
    inverse = 1 / sizes[:, None] + 1 / sizes
    a = 4 * g - 6 + (10 - 6 * g) * inverse
    b = 12 * g + 8 * harmonic - 22 + (2 * g - 14 * harmonic - 4) * inverse
    c = 36 * harmonic + 4 + (2 * harmonic - 6) * inverse
    below = (pair - 1) * (pair - 2) * (pair - 3)
    # Fewer than four values have no standard deviation.
    variance = np.where(below > 0, a * pair**3 + b * pair**2 + c * pair + 24, np.nan)
    standard: Array = (statistic - 1) / np.sqrt(variance / np.maximum(below, 1))
    return standard


@dataclass(frozen=True)
class _Kind:
    add: Callable[[Array, Block, float | None], None]
    merge: np.ufunc
    finish: Callable[[Array, Array], Array]


KINDS = {
    "ks": _Kind(_kolmogorov_smirnov, np.maximum, _symmetric),
    "ad": _Kind(_anderson_darling, np.add, _standardised),
    "cvm": _Kind(_cramer_von_mises, np.add, _criterion),
    "w1": _Kind(_wasserstein, np.add, _symmetric),
}
"""Kolmogorov and Smirnov's greatest |d|; Anderson and Darling's statistic of midranks,
standardised, NaN for a pair of fewer than four values; Cramer and von Mises' T by its definition,
which SciPy's is without ties; Wasserstein's distance of the logarithms of positive values."""
