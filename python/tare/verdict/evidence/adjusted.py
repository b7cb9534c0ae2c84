# SPDX-License-Identifier: Apache-2.0
"""p-values of the primary metric, adjusted over everything that it is compared in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from tare.stats.arrays import Array
from tare.stats.power import family_factor
from tare.stats.special import student_quantile
from tare.stats.step_down import over_families, paired, unpaired
from tare.verdict.evidence.evidence import Evidence, Values


def adjusted(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The evidence with its `p_adjusted`, by the step-down maximum within each family.

    A family is all comparisons of a paired experiment, whose blocks are exchanged for all of them
    together; unpaired, all spans of two conditions, whose runs are.
    """
    families = _families(evidence)
    own = [_adjusted([evidence[place] for place in family]) for family in families]
    found = list(evidence)
    for family, p in zip(families, over_families(own), strict=True):
        for place, p_adjusted in zip(family, p.tolist(), strict=True):
            found[place] = replace(evidence[place], p_adjusted=p_adjusted)
    return found


def family_factors(evidence: Sequence[Evidence]) -> list[float]:
    """For `Design.family`: how much larger than alone a difference must be to be found."""
    found = [1.0] * len(evidence)
    for family in _families(evidence):
        of_family = [evidence[place] for place in family]
        if of_family[0].paired:
            first, second = _tables(of_family)
            differences = second - first
            whole = differences[np.isfinite(differences).all(axis=1)]
            if len(whole) < 2:
                continue
            for column, place in enumerate(family):
                found[place] = family_factor(whole, column, evidence[place].alpha)
            continue
        for place in family:
            comparison = evidence[place]
            freedom, tail = (
                comparison.runs_baseline + comparison.runs_condition - 2,
                comparison.alpha / 2,
            )
            together, alone = (student_quantile(freedom, 1 - tail / n) for n in (len(family), 1))
            found[place] = float(together / alone)
    return found


def _families(evidence: Sequence[Evidence]) -> list[list[int]]:
    """Places of each family's comparisons that have a p-value."""
    places: dict[Hashable, list[int]] = {}
    for place, comparison in enumerate(evidence):
        if comparison.p is not None:
            places.setdefault(comparison.family, []).append(place)
    return [*places.values()]


def _adjusted(family: Sequence[Evidence]) -> Array:
    first, second = _tables(family)
    return paired(second - first) if family[0].paired else unpaired(first, second)


def _tables(family: Sequence[Evidence]) -> tuple[Array, Array]:
    first, second = (_table([comparison.values[side] for comparison in family]) for side in (0, 1))
    return first, second


def _table(columns: Sequence[Values]) -> Array:
    """(runs, comparisons), NaN where a run lacks a comparison."""
    keys = sorted({key for column in columns for key in column})
    return np.array([[column.get(key, np.nan) for column in columns] for key in keys])
