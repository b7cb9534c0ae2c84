# SPDX-License-Identifier: Apache-2.0
"""The shift between two conditions that no outlier moves, with an interval free of distributions.

Hodges and Lehmann (1963): the median of all ways to look at the difference. The interval ends at
order statistics of the same, as far in as the exact distribution of Wilcoxon's statistic allows
(Hollander and Wolfe 1999, sections 3.3 and 4.3): it is the set of shifts that his test keeps.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite


@dataclass(frozen=True)
class HodgesLehmann:
    """`interval` covers with probability `level`, the least level not below what was asked for;
    both None where so few runs reach no such level."""

    estimate: float
    interval: tuple[float, float] | None
    level: float | None


def paired_shift(differences: npt.ArrayLike, level: float = 0.95) -> HodgesLehmann:
    """Of block differences (n,), n >= 1: the median of the means of all pairs (Walsh averages).

    The interval assumes that differences are symmetric about the shift. O(n^3).
    """
    values = finite(differences, at_least=1)
    first, second = np.triu_indices(values.size)
    return _between((values[first] + values[second]) / 2, _signed_rank(values.size), level)


def unpaired_shift(
    first: npt.ArrayLike, second: npt.ArrayLike, level: float = 0.95
) -> HodgesLehmann:
    """Of runs (n,) and (m,), both at least 1: the median of all differences second - first.

    The interval assumes two distributions of one shape. O(n^2 m^2).
    """
    first, second = finite(first, at_least=1), finite(second, at_least=1)
    return _between((second[:, None] - first).ravel(), _rank_sum(first.size, second.size), level)


def _between(looks: Array, chances: Array, level: float) -> HodgesLehmann:
    """`chances` (looks + 1,): of so many looks being below the true shift."""
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, found {level}")
    ordered = np.sort(looks)
    left_out = 2 * np.cumsum(chances)
    # A level that is just reached must not fail for its last bit.
    # From the k-th least to the k-th greatest look misses the shift where fewer than k are below or
    # above it.
    cut = int(np.searchsorted(left_out, 1 - level + 1e-12))
    if cut == 0:
        return HodgesLehmann(float(np.median(ordered)), None, None)
    interval = float(ordered[cut - 1]), float(ordered[-cut])
    return HodgesLehmann(float(np.median(ordered)), interval, 1 - float(left_out[cut - 1]))


def _signed_rank(runs: int) -> Array:
    """The distribution of Wilcoxon's signed-rank statistic, 0 to n (n + 1) / 2."""
    chances = np.zeros(runs * (runs + 1) // 2 + 1)
    chances[0] = 1
    for rank in range(1, runs + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return chances


def _rank_sum(n: int, m: int) -> Array:
    """The distribution of Mann and Whitney's U, 0 to nm, by their recurrence (1947)."""
    rows = [np.ones(1) for _ in range(m + 1)]
    for i in range(1, n + 1):
        fresh = [np.ones(1)]
        for j in range(1, m + 1):
            chances = np.zeros(i * j + 1)
            chances[j:] += i / (i + j) * rows[j]
            chances[: i * (j - 1) + 1] += j / (i + j) * fresh[j - 1]
            fresh.append(chances)
        rows = fresh
    return rows[m]
