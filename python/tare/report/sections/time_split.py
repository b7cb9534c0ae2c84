# SPDX-License-Identifier: Apache-2.0
"""How the time of an experiment had best been split between blocks and the requests in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import expm1, log, sqrt
from statistics import median
from typing import TYPE_CHECKING

from tare.report.result.distributions import covered
from tare.report.result.result import Result
from tare.report.result.verdicts import Compared
from tare.report.tables import whose
from tare.report.typesetting import count, duration, percent
from tare.stats.budget_split import Components, best_split, components
from tare.stats.fewest_runs import LEAST_PAIRED

if TYPE_CHECKING:
    from tare.samples.model import Run

COLUMNS = (
    "condition",
    "blocks",
    "measured in each",
    "besides",
    "standard error",
    "best blocks",
    "best length",
    "standard error then",
)
SECOND = 1e9


@dataclass(frozen=True)
class Time:
    """What a block of this experiment cost, in seconds."""

    measured: float
    besides: float
    """Starting, warming up and stopping everything in it."""


def rows(result: Result) -> list[Sequence[str]]:
    """A row for each condition whose blocks say what they cost and how far they scatter."""
    return [
        row
        for comparison in sorted(result.primary_comparisons, key=result.rank)
        if (row := _row(result, comparison))
    ]


def _row(result: Result, comparison: Compared) -> Sequence[str] | None:
    environment, span = comparison.environment, comparison.span
    here = [run for run in result.experiment.runs if run.environment == environment]
    time = _time(here)
    pairs = list(_pairs(result, [run for run in here if run.span == span], comparison))
    if time is None or len(pairs) < 2:
        return None
    requests = sum(min(a.answered, b.answered) for a, b in pairs) // len(pairs)
    found = _components(result, pairs, requests)
    if found is None or not found.within > 0:
        return None
    budget = len(pairs) * (time.measured + time.besides)
    each = time.measured / requests
    best = best_split(found, time.besides, each, budget, LEAST_PAIRED)
    if best is None:
        return None
    error = sqrt((found.between + found.within / requests) / len(pairs))
    return (
        whose(result, comparison),
        count(len(pairs)),
        duration(time.measured * SECOND),
        duration(time.besides * SECOND),
        percent(expm1(error), signed=False),
        count(best.runs),
        duration(best.requests * each * SECOND),
        percent(expm1(best.standard_error), signed=False),
    )


def _time(runs: Sequence["Run"]) -> Time | None:
    """Of a block; None of one block alone, or if it is not known when runs began and ended."""
    times: dict[int, list[tuple[int, int]]] = {}
    for run in runs:
        if run.started_ns is None or run.ended_ns is None:
            return None
        times.setdefault(run.block, []).append((run.started_ns, run.ended_ns))
    blocks = sorted((min(start for start, _ in block), covered(block)) for block in times.values())
    # The median: an experiment that was resumed has a pause in it.
    pauses = [then - begin - took for (begin, took), (then, _) in pairwise(blocks)]
    measured = median(took for _, took in blocks) if blocks else 0
    if not pauses or not measured:
        return None
    return Time(measured / SECOND, max(median(pauses), 0) / SECOND)


def _pairs(
    result: Result, runs: Sequence["Run"], comparison: Compared
) -> Iterator[tuple["Run", "Run"]]:
    """The valid runs of baseline and condition of each block."""
    sides = [
        {run.block: run for run in runs if run.valid and run.condition == name}
        for name in (result.baseline, comparison.condition)
    ]
    for block in sorted(sides[0].keys() & sides[1].keys()):
        if all(side[block].summaries.get(result.primary, 0) > 0 for side in sides):
            yield sides[0][block], sides[1][block]


def _components(
    result: Result, pairs: Sequence[tuple["Run", "Run"]], requests: int
) -> Components | None:
    """Of the differences of blocks, each of which has the noise of both of its runs.

    The noise is that of the runs' mean logarithms, and taken for that of the metric.
    """
    steadiness = result.looks.steadiness
    if any((run.run, run.span) not in steadiness for pair in pairs for run in pair):
        return None
    differences = [
        log(condition.summaries[result.primary]) - log(baseline.summaries[result.primary])
        for baseline, condition in pairs
    ]
    noise = [sum(steadiness[run.run, run.span].noise for run in pair) for pair in pairs]
    return components(differences, noise, [requests] * len(pairs))
