# SPDX-License-Identifier: Apache-2.0
"""p-values of many comparisons of the same runs, adjusted together by the step-down maximum.

Westfall and Young (1993, algorithm 4.1): the statistic of every comparison is compared with the
greatest among all comparisons that are not larger, over the same exchanges of runs for all.
What comparisons have in common - blocks, the baseline, spans of one request - makes their maxima
small; Holm's procedure assumes the worst, and with six blocks can decide no two comparisons.
The statistic is |mean| / standard error, so that a noisy comparison does not mask a quiet one.
"""

from collections.abc import Callable, Iterator, Sequence
from math import comb

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array
from tare.stats.multiplicity import chances
from tare.stats.permutation import labellings

EXACT = 20_000
"""Most exchanges of runs that are all listed; of more, as many are drawn."""
_ROWS = 1_024
_TIE = 1 - 1e-9
"""Statistics of the same numbers in another order differ in their last bits: they are ties."""


def paired(differences: npt.ArrayLike, seed: int = 0) -> Array:
    """Adjusted p-values (k,) of k comparisons from their differences (n, k) in n blocks.

    NaN where a block lacks a comparison. One sign per block, the same for all comparisons, is
    flipped: all 2^(n-1) ways up to 15 blocks, else 20,000 drawn. A comparison without any spread
    has an infinite statistic. Raises ValueError unless every comparison has two blocks.
    """
    values = _table(differences)
    blocks = len(values)
    known = np.isfinite(values)
    if (known.sum(axis=0) < 2).any():
        raise ValueError("expected two blocks in every comparison")
    filled = np.where(known, values, 0.0)
    count = known.sum(axis=0)
    squares = (filled**2).sum(axis=0)

    def statistics(signs: Array) -> Array:
        total = signs @ filled
        return _ratio(total / count, (squares - total**2 / count) / (count - 1) / count)

    exact = 2 ** (blocks - 1) <= EXACT
    return _adjusted(statistics, np.ones((1, blocks)), _signs(blocks, exact, seed), exact)


def unpaired(first: npt.ArrayLike, second: npt.ArrayLike, seed: int = 0) -> Array:
    """Adjusted p-values (k,) of k summaries, such as spans, of runs (n, k) and (m, k).

    NaN where a run lacks a summary. Runs change sides with all their summaries: all ways to choose
    m of n + m up to 20,000, else as many drawn. The standard error is Welch's. Raises ValueError
    unless both sides have two runs of every summary.
    """
    first, second = _table(first), _table(second)
    both = np.concatenate([first, second])
    known = np.isfinite(both)
    if min((known[: len(first)]).sum(axis=0).min(), known[len(first) :].sum(axis=0).min()) < 2:
        raise ValueError("expected two runs of every summary on both sides")
    # Centred, sums of squares do not lose their digits.
    centred = np.where(known, both - np.nanmean(both, axis=0), 0.0)
    sums, counts = centred.sum(axis=0), known.sum(axis=0)
    squares = centred**2

    def statistics(chosen: Array) -> Array:
        here = chosen @ centred, chosen @ squares, chosen @ known
        there = sums - here[0], squares.sum(axis=0) - here[1], counts - here[2]
        # An exchange may leave a side with fewer than two runs of a summary: it has no statistic.
        with np.errstate(divide="ignore", invalid="ignore"):
            (mean, error), (other, its_error) = (_moments(*side) for side in (here, there))
            found = _ratio(mean - other, error + its_error)
        return np.where(np.minimum(here[2], there[2]) < 2, np.nan, found)

    exact = comb(len(both), len(second)) <= EXACT
    observed = (np.arange(len(both)) >= len(first)).astype(np.float64)[None, :]
    return _adjusted(statistics, observed, _choices(len(both), len(second), exact, seed), exact)


def over_families(families: Sequence[npt.ArrayLike]) -> list[Array]:
    """Adjusted p-values of several families whose own are adjusted already: (k,) each.

    The families share alpha equally, whatever they have to do with each other; a family of which
    all comparisons are rejected leaves its share to the others. For families of one comparison
    that is Holm's (1979) procedure.
    """
    own = [chances(family) for family in families]
    order = sorted(range(len(own)), key=lambda place: float(own[place].max()))
    found = [np.ones(family.size) for family in own]
    for place, family in enumerate(own):
        reached, rank = 0.0, order.index(place)
        for done in range(rank + 1):
            share = len(own) - done
            found[place] = np.minimum(found[place], np.maximum(reached, share * family))
            reached = max(reached, share * float(own[order[done]].max()))
    return found


def _adjusted(
    statistics: Callable[[Array], Array], observed: Array, exchanges: Iterator[Array], exact: bool
) -> Array:
    seen = statistics(observed)[0]
    order = np.argsort(seen, kind="stable")
    hits, total = np.zeros(seen.size), 0
    for rows in exchanges:
        # Of the comparisons up to each, in rising order of what was seen. Without a statistic a
        # comparison counts against itself alone: of few runs, it would hide the others.
        found = statistics(rows)[:, order]
        unknown = np.isnan(found)
        greatest = np.maximum.accumulate(np.where(unknown, 0.0, found), axis=1)
        hits += (unknown | (greatest >= seen[order] * _TIE)).sum(axis=0)
        total += len(rows)
    p = hits / total if exact else (hits + 1) / (total + 1)
    adjusted = np.empty_like(p)
    # None is below that of a comparison with a larger statistic.
    adjusted[order] = np.maximum.accumulate(p[::-1])[::-1]
    return adjusted


def _ratio(mean: Array, squared_error: Array) -> Array:
    """|mean| / standard error: infinite where the error is zero but for rounding."""
    size = np.abs(mean)
    some = squared_error > 1e-14 * size**2
    root = np.sqrt(np.where(some, squared_error, 1.0))
    return np.where(some, size / root, np.where(size == 0, 0.0, np.inf))


def _moments(total: Array, squares: Array, count: Array) -> tuple[Array, Array]:
    """Means, and their squared standard errors, from sums."""
    mean = total / count
    return mean, (squares - total * mean) / (count - 1) / count


def _signs(blocks: int, exact: bool, seed: int) -> Iterator[Array]:
    """Rows of signs (rows, blocks). Flipping all of them changes nothing, so the last stays."""
    if exact:
        bits = np.arange(blocks)
        for start in range(0, 2 ** (blocks - 1), _ROWS):
            codes = np.arange(start, min(start + _ROWS, 2 ** (blocks - 1)))
            yield np.asarray(np.where((codes[:, None] >> bits) & 1, -1.0, 1.0), dtype=np.float64)
        return
    generator = np.random.default_rng(seed)
    for start in range(0, EXACT, _ROWS):
        rows = min(_ROWS, EXACT - start)
        yield np.asarray(generator.integers(0, 2, size=(rows, blocks)) * 2.0 - 1.0)


def _choices(runs: int, size: int, exact: bool, seed: int) -> Iterator[Array]:
    """Rows (rows, runs) with `size` ones each: the runs that are of the second side."""
    generator = np.random.default_rng(seed)
    ways = labellings(runs, size) if exact else None
    for start in range(0, EXACT if ways is None else len(ways), _ROWS):
        if ways is None:
            rows = np.zeros((min(_ROWS, EXACT - start), runs))
            rows[:, :size] = 1.0
            yield generator.permuted(rows, axis=1)
        else:
            chosen = np.zeros((len(ways[start : start + _ROWS]), runs))
            np.put_along_axis(chosen, ways[start : start + _ROWS], 1.0, axis=1)
            yield chosen


def _table(values: npt.ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or np.isinf(array).any():
        raise ValueError("expected finite numbers or NaN in two dimensions")
    return array
