# SPDX-License-Identifier: Apache-2.0
"""What two conditions do not have in common besides the condition: load, blocks, runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tare.samples.model import OTHER_LOAD, Run
from tare.stats.interval import welch_difference

CHANCE = 0.01
"""Of arrivals that come at random the rate of a run is not exactly that of another."""


@dataclass(frozen=True)
class LoadMismatch:
    """More, or less, of a span arrived in one condition, and met more, or less, of its kind."""

    arrivals: float
    """Relative difference of arrivals a second."""
    others: float
    """Relative difference of the number under way, the arriving one included."""


def load_mismatch(base: Sequence[Run], mine: Sequence[Run]) -> LoadMismatch | None:
    """Of one span in two conditions; None where it had the same load.

    A service shares its time among what is under way, so with fewer it is faster. Where a span
    itself got slower, more of them are under way, of no more arrivals: that is the effect, and no
    other load. Nor is what chance does to arrivals in a few runs. With one user at a time none
    meets another, whatever the rate.
    """
    first, second = ([run.conduct for run in side if run.valid] for side in (base, mine))
    rates = [[one.arrivals for one in side if one.arrivals] for side in (first, second)]
    if not all(rates):
        return None
    apart = welch_difference(*(np.log(side) for side in rates))
    if apart is not None and apart.p > CHANCE:
        return None
    arrivals = fmean(rates[1]) / fmean(rates[0]) - 1
    met = [1 + fmean(one.others for one in side) for side in (first, second)]
    others = met[1] / met[0] - 1
    if abs(arrivals) <= OTHER_LOAD or arrivals * others <= 0:
        return None
    return LoadMismatch(arrivals, others)


def holes(base: Sequence[Run], mine: Sequence[Run], paired: bool) -> tuple[str, ...]:
    """Runs of which nothing is there: of those that failed it is known why."""
    found = [f"run {run.run} of '{run.condition}'" for run in (*base, *mine) if run.gone]
    if paired and base and mine:
        blocks = [{run.block for run in side} for side in (base, mine)]
        for side, there, other in zip((base, mine), blocks, reversed(blocks), strict=True):
            found += [f"block {block} of '{side[0].condition}'" for block in sorted(other - there)]
    return tuple(found)
