# SPDX-License-Identifier: Apache-2.0
"""Times whose unit was assumed: a warning where some seem to be in another unit than the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from statistics import median

from tare.samples.model import Experiment, Run

STEPS = (3, 6, 9)
"""From one unit of time to another, in powers of ten."""
TOLERANCE = 0.3
"""In powers of ten, a factor of two: what an effect or scatter may add to a step."""

Pair = tuple[str, float, float]
"""What is compared, and its two times in ns."""


def units(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """One line about the first pair of times that are a step from unit to unit apart, if any.

    Stated units are believed: one of the pair is from a file without a unit.
    """
    assumed = next((run.assumed_unit for run in runs if run.assumed_unit), None)
    for span in dict.fromkeys(run.span for run in runs):
        known = [run for run in runs if run.span == span and run.summaries.get("p50", 0) > 0]
        for what, first, second in _pairs([run for run in known if run.valid], experiment.baseline):
            if times := _step(first, second):
                yield (
                    f"no unit is stated, so {assumed} was assumed, and {what} are about {times:,}"
                    " times apart: if some are in another unit, convert them, or state the unit"
                    " of a condition with --unit NAME=ns|us|ms|s"
                )
                return


def _pairs(runs: Sequence[Run], baseline: str) -> Iterator[Pair]:
    """Of one span: the parts of each run, the runs of each condition, the conditions."""
    for run in runs:
        if run.assumed_unit:
            ends = run.quantiles[0.1], run.quantiles[0.9]
            yield f"p10 and p90 of a run of '{run.condition}'", *ends
    by_condition: dict[str, list[Run]] = {baseline: []}
    for run in runs:
        by_condition.setdefault(run.condition, []).append(run)
    medians = {
        name: [run.summaries["p50"] for run in mine] for name, mine in by_condition.items() if mine
    }
    for name, values in medians.items():
        if any(run.assumed_unit for run in by_condition[name]):
            yield f"runs of '{name}'", min(values), max(values)
    for name, values in medians.items():
        both = by_condition[name] + by_condition[baseline]
        if baseline in medians and any(run.assumed_unit for run in both):
            yield f"'{name}' and '{baseline}'", median(values), median(medians[baseline])


def _step(first: float, second: float) -> int | None:
    """1,000, a million or 10^9 where two times are about as many times apart, else None."""
    if min(first, second) <= 0:
        return None
    apart = abs(log10(second / first))
    nearest = min(STEPS, key=lambda step: abs(apart - step))
    return int(10**nearest) if abs(apart - nearest) < TOLERANCE else None
