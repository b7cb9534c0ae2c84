# SPDX-License-Identifier: Apache-2.0
"""What two conditions do not have in common besides the condition: load, blocks, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tare.samples.model import OTHER_LOAD, Run, Traced
from tare.stats.interval import welch_difference

CHANCE = 0.01
"""Of arrivals that come at random the rate of a run is not exactly that of another."""


@dataclass(frozen=True)
class LoadMismatch:
    """More, or less, of a span arrived in one condition, and met more, or less, of its kind."""

    arrivals: float
    """Relative difference of arrivals a second."""
    others: float
    """Relative difference of the number under way, the arriving span included."""
    calls: tuple[float, float] | None = None
    """Calls of the span per request of both sides, if equally many requests arrived: then it is
    the application that changed its load."""


def load_mismatch(
    base: Sequence[Run], mine: Sequence[Run], traces: Mapping[tuple[int, str], Traced]
) -> LoadMismatch | None:
    """Of one span in two conditions; None where it had the same load.

    A service shares its time among what is under way, so with fewer it is faster. Where a span
    itself got slower, more of them are under way, of no more arrivals: that is the effect, and no
    other load. Nor is what chance does to arrivals in a few runs. With one user at a time none
    meets another, whatever the rate.
    """
    sides = [
        [run for run in side if run.valid and run.load_stats.arrivals] for side in (base, mine)
    ]
    if not all(sides):
        return None
    rates = [[run.load_stats.arrivals or 0.0 for run in side] for side in sides]
    arrivals = _difference(rates)
    met = [1 + fmean(run.load_stats.others for run in side) for side in sides]
    others = met[1] / met[0] - 1
    if arrivals * others <= 0:
        return None
    calls = [[_calls(run, traces) for run in side] for side in sides]
    if not all(min(side) > 0 for side in calls):
        return LoadMismatch(arrivals, others)
    requests = [np.divide(*side).tolist() for side in zip(rates, calls, strict=True)]
    per_request = fmean(calls[0]), fmean(calls[1])
    return LoadMismatch(arrivals, others, None if _difference(requests) else per_request)


def _difference(rates: Sequence[Sequence[float]]) -> float:
    """How much larger the second side's rate is, relatively; 0 if that may be chance or too little
    to matter."""
    apart = welch_difference(*(np.log(side) for side in rates))
    found = fmean(rates[1]) / fmean(rates[0]) - 1
    by_chance = apart is not None and apart.p > CHANCE
    return 0.0 if by_chance or abs(found) <= OTHER_LOAD else found


def _calls(run: Run, traces: Mapping[tuple[int, str], Traced]) -> float:
    """Calls of the run's span per request with a trace; 0 if there are none."""
    requests = [traced for (number, _), traced in traces.items() if number == run.run]
    calls = sum(
        traced.requests * traced.parts[run.span].calls
        for traced in requests
        if run.span in traced.parts
    )
    return calls / max(1, sum(traced.requests for traced in requests))


def holes(base: Sequence[Run], mine: Sequence[Run], paired: bool) -> tuple[str, ...]:
    """Runs of which nothing is there: of those that failed it is known why."""
    found = [f"run {run.run} of '{run.condition}'" for run in (*base, *mine) if run.gone]
    if paired and base and mine:
        blocks = [{run.block for run in side} for side in (base, mine)]
        for side, there, other in zip((base, mine), blocks, reversed(blocks), strict=True):
            found += [f"block {block} of '{side[0].condition}'" for block in sorted(other - there)]
    return tuple(found)
