# SPDX-License-Identifier: Apache-2.0
"""From the root to the spans: a span is asked about only where the span around it differed.

A sequentially rejective graph (Bretz, Maurer, Brannath and Posch 2009), which bounds the chance of
even one false alarm whatever the p-values have to do with each other. The roots share alpha. A
rejected span hands its share to the spans inside it by how many innermost spans they hold (as
Meinshausen 2008 weighs them); one with none inside hands it back to what surrounds it, and so to
its siblings, and only where a whole tree is rejected to the other roots. Roots alone give Holm's
procedure; one root is tested at all of alpha however many spans it has.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array
from tare.stats.multiplicity import chances

_OUTWARDS = 1e-6
"""Share that goes outwards while spans inside are left: when none is left it is all there is."""


def gatekeep(p: npt.ArrayLike, parents: Sequence[int | None]) -> Array:
    """Adjusted p-values (n,) of a forest; `parents` has the place of each parent, None for a root.

    None is below its parent's. Raises ValueError for p-values outside of 0 to 1 and for parents
    that are not places or go in circles.
    """
    raw = chances(p)
    if len(parents) != raw.size:
        raise ValueError(f"expected {raw.size} parents, found {len(parents)}")
    weight, passes = _graph(parents)
    adjusted, reached = np.ones(raw.size), 0.0
    while weight.any():
        asked = np.divide(raw, weight, out=np.full(raw.size, np.inf), where=weight > 0)
        one = int(asked.argmin())
        reached = max(reached, float(asked[one]))
        if reached >= 1:
            break
        adjusted[one] = reached
        handed, weight[one] = weight[one] * passes[one], 0.0
        weight, passes = weight + handed, _without(one, passes)
    return adjusted


def _graph(parents: Sequence[int | None]) -> tuple[Array, Array]:
    """The share of alpha of each place at first, and what it hands to each other (n, n)."""
    leaves = _leaves(parents)
    roots = np.array([parent is None for parent in parents], dtype=np.bool_)
    passes = np.zeros((roots.size, roots.size))
    for place, parent in enumerate(parents):
        inside = np.array([other == place for other in parents])
        outside = roots.copy() if parent is None else np.arange(roots.size) == parent
        outside[place] = False
        passes[place, outside] = (_OUTWARDS if inside.any() else 1.0) / max(outside.sum(), 1)
        passes[place, inside] = leaves[inside] / leaves[place]
    return roots / max(int(roots.sum()), 1), _whole(passes)


def _leaves(parents: Sequence[int | None]) -> Array:
    """How many innermost spans each place holds; itself, where it is one."""
    leaves, circle = np.zeros(len(parents)), False
    for start in set(range(len(parents))).difference(parents):
        place: int | None = start
        for _ in parents:
            if place is None:
                break
            if not 0 <= place < len(parents):
                raise ValueError(f"expected the place of a parent, found {place}")
            leaves[place] += 1
            place = parents[place]
        circle |= place is not None
    if circle or not leaves.all():
        raise ValueError("expected parents that lead to a root, found a circle")
    return leaves


def _without(one: int, passes: Array) -> Array:
    """What is handed on once `one` is gone: what went to it goes to where it would have handed."""
    fresh = passes + np.outer(passes[:, one], passes[one])
    fresh[one], fresh[:, one] = 0, 0
    np.fill_diagonal(fresh, 0)
    return _whole(fresh)


def _whole(passes: Array) -> Array:
    """Rows that sum to 1, where there is anything in them."""
    total = passes.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(passes, total, out=np.zeros_like(passes), where=total > 0))
