# SPDX-License-Identifier: Apache-2.0
"""What the machine did while runs took turns on it: not their warm-up, nor their slowdown.

A processor that is shared runs a quarter slower for seconds and faster again. All runs of an
interleaved block see that alike, at one moment, and other blocks see it at other moments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite

CELLS = 200
"""Parts of a run, of equal length."""
AGREEING = 0.9
"""Share of the blocks that move in one direction where the services do and not the machine."""


def course(batches: npt.ArrayLike, edges: npt.ArrayLike) -> Array:
    """How the level of a run moved: the median batch of each of its parts (200,).

    `batches` and `edges` are as for `steady.classify`. A part without a batch lies between its
    neighbours. 0 is the mean of the second half, so that runs of which one warms up still agree on
    the rest. Raises ValueError for NaN, infinity and no batches.
    """
    values = finite(batches, 1)
    cell = cells(edges)
    found = np.unique(cell)
    medians = [float(np.median(values[cell == part])) for part in found]
    levels = np.interp(np.arange(CELLS), found, medians)
    return np.asarray(levels - levels[CELLS // 2 :].mean(), dtype=np.float64)


def cells(edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The part of its run, 0 to 199, in which each batch (n,) between `edges` (n + 1,) begins."""
    places = np.asarray(edges, dtype=np.int64)
    return np.asarray(places[:-1] * CELLS // places[-1])


def of_machine(blocks: Sequence[Sequence[Array]]) -> list[Array]:
    """The machine's course in each block, (200,), from the courses (200,) of its runs.

    The runs of a block share their median course. As far as nine of ten blocks move in one
    direction, that is the services' own: a warm-up comes in every block at the same part, a slow
    machine does not. The rest is the machine's. A run without another in its block
    shares nothing, and of one block nothing is known to be the machine's: both give zeros.
    """
    shared = [np.median(block, axis=0) if len(block) > 1 else None for block in blocks]
    together = [median for median in shared if median is not None]
    if not together:
        return [np.zeros(CELLS) for _ in blocks]
    low, high = np.quantile(together, [1 - AGREEING, AGREEING], axis=0)
    own = np.maximum(low, 0) + np.minimum(high, 0)
    return [np.zeros(CELLS) if median is None else np.asarray(median - own) for median in shared]
