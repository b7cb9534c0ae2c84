# SPDX-License-Identifier: Apache-2.0
"""Permutation tests on runs: exact where all permutations can be listed, else sampled.

The p-value is two-sided: the share of permutations whose mean difference is at least as far from
zero as the observed difference. Sampled, it is (b + 1) / (m + 1) (Phipson & Smyth 2010), which
cannot be 0 and keeps its level.
"""

from functools import lru_cache
from itertools import chain, combinations
from math import comb

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite

EXACT_SIGNS = 20
"""Most differences whose 2^n sign patterns are all listed."""
EXACT_LABELS = 200_000
"""Most ways of labelling runs that are all listed."""
SAMPLES = 19_999
FEW = 500
"""Runs from which on the least p is 0 to the last digit."""


def sign_flip(differences: npt.ArrayLike, seed: int = 0) -> float:
    """The p-value of differences of paired runs (n,) against symmetry about zero, n >= 1.

    Exact up to 20 differences: all 2^n patterns of signs (Fisher 1935).
    """
    values = finite(differences, at_least=1)
    observed, size = float(values.sum()), float(np.abs(values).sum())
    if values.size <= EXACT_SIGNS:
        # Flipping every sign gives the same distance from zero, so the first sign stays.
        sums = values[:1]
        for value in values[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(_as_far(sums, observed, size)))
    generator = np.random.default_rng(seed)
    signs = generator.integers(0, 2, size=(SAMPLES, values.size), dtype=np.int8) * 2 - 1
    return _sampled(_as_far(signs @ values, observed, size))


def label_permutation(first: npt.ArrayLike, second: npt.ArrayLike, seed: int = 0) -> float:
    """The p-value of the difference of the means of unpaired runs, (n,) and (m,), both at least 1.

    Exact while there are no more than 200,000 ways to choose which runs belong to `second`.
    """
    first, second = finite(first, at_least=1), finite(second, at_least=1)
    both = np.concatenate([first, second])
    size = float(np.abs(both).sum())
    # Centred, the sum over the runs called "second" is proportional to the difference of means.
    both = both - both.mean()
    observed = float(both[first.size :].sum())
    if comb(both.size, second.size) <= EXACT_LABELS:
        sums = both[labellings(both.size, second.size)].sum(axis=1)
        return float(np.mean(_as_far(sums, observed, size)))
    generator = np.random.default_rng(seed)
    shuffled = generator.permuted(np.tile(both, (SAMPLES, 1)), axis=1)
    return _sampled(_as_far(shuffled[:, : second.size].sum(axis=1), observed, size))


@lru_cache(maxsize=2)
def labellings(runs: int, size: int) -> npt.NDArray[np.intp]:
    """Every way (ways, size) to choose `size` of `runs` places; kept, since many metrics ask."""
    places = np.fromiter(chain.from_iterable(combinations(range(runs), size)), dtype=np.intp)
    ways = places.reshape(-1, size)
    ways.flags.writeable = False
    return ways


def least_p(runs: int, paired: bool) -> float:
    """The least two-sided p that `runs` runs per condition can reach: 2 / 2^n or 2 / C(2n, n)."""
    return min(1.0, 2.0 / (2**runs if paired else comb(2 * runs, runs))) if runs < FEW else 0.0


def _sampled(as_far: npt.NDArray[np.bool_]) -> float:
    return (int(as_far.sum()) + 1) / (as_far.size + 1)


def _as_far(sums: Array, observed: float, size: float) -> npt.NDArray[np.bool_]:
    """Which sums are as far from zero as the observed sum; `size` is that of the numbers given.

    Sums of the same numbers in another order differ in their last bits, by as much as the numbers
    are large, however little they differ from each other: they are ties.
    """
    return np.abs(sums) >= abs(observed) - 1e-12 * size
