# SPDX-License-Identifier: Apache-2.0
"""What no number of runs averages out: rounding whose direction is unknown, warm-up that is left.

Both widen an interval on the log scale instead of forbidding a verdict: an effect that is larger
than what they can have added is still found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log, sqrt
from statistics import fmean
from typing import Literal

import numpy as np

from tare.samples.describe.warm_up_cuts import FEW
from tare.samples.model import Run
from tare.stats.arrays import Array
from tare.stats.interval import welch_difference
from tare.stats.special import student_quantile
from tare.stats.steady import unlike
from tare.verdict.judgement import LEVEL

Cause = Literal["rounding", "warm-up"]
SETTLING = 2.0
"""How many times the fall from its first half to its second a window can lie above the level that
it falls to: for a decay with a time constant as long as the window it is 1.6 times."""
FINE = 1e-4
"""Steps that are a smaller share of a value move it by less than is ever judged."""
HIGH = 0.9
"""Beyond a quantile from this on, a tenth of `FEW` is still some."""
DISTINCT = 3
"""Steps whose directions are tried in all combinations; of more, only the coarsest are."""


@dataclass(frozen=True)
class Systematic:
    """By how much a shift of logs may be wrong, `low` at most 0 and `high` at least 0, and why."""

    low: float = 0.0
    high: float = 0.0
    cause: Cause | None = None

    @property
    def most(self) -> float:
        """The larger of both."""
        return max(-self.low, self.high)

    def __add__(self, other: Systematic) -> Systematic:
        largest = max(self, other, key=lambda error: error.high - error.low)
        return Systematic(self.low + other.low, self.high + other.high, largest.cause)


NOTHING = Systematic()


def rounding(
    first: Sequence[Run], second: Sequence[Run], value: Callable[[Run], float]
) -> Systematic:
    """What unknown rounding does to the difference of the means of the logs of `value`, in ns.

    Times are taken as rounded to the nearest step; rounded down they are half a step more. Files
    with the same step were written by the same tool: either all were rounded down or none.
    """
    steps = _steps([*first, *second], value)
    if not steps:
        return NOTHING

    def shift(down: Mapping[float, bool]) -> float:
        base, condition = (
            fmean(
                log(value(run) + (run.step_ns / 2 if down.get(run.step_ns) else 0)) for run in side
            )
            for side in (first, second)
        )
        return condition - base

    nearest = shift({})
    ways = product((False, True), repeat=len(steps))
    errors = [shift(dict(zip(steps, way, strict=True))) - nearest for way in ways]
    (low, high), (other_low, other_high) = (
        np.mean([_inside(run, value(run)) for run in side], axis=0) for side in (second, first)
    )
    return Systematic(min(errors) + low - other_high, max(errors) + high - other_low, "rounding")


def _inside(run: Run, value: float) -> tuple[float, float]:
    """How far a value may lie from where it was put inside of its step, in logs: down and up.

    It was put there by how many requests are beyond both ends of the step. Where next to none is
    beyond an end, the value may lie anywhere towards the other end.
    """
    step = run.step_ns
    if step <= FINE * value or FEW not in run.quantiles:
        return 0.0, 0.0
    middle = round(value / step) * step
    start, end = max(middle - step / 2, FINE * value), middle + step / 2
    tail = value >= run.quantiles[HIGH]
    least, most = run.quantiles[FEW], run.quantiles[1 - (FEW / 10 if tail else FEW)]
    up = 0.0 if least < start else log(end / value)
    down = 0.0 if most > end else log(start / value)
    return min(down, 0.0), max(up, 0.0)


def _steps(runs: Sequence[Run], value: Callable[[Run], float]) -> list[float]:
    found = {run.step_ns for run in runs if run.step_ns > FINE * value(run)}
    return sorted(found, reverse=True)[:DISTINCT]


def warm_up(first: Sequence[Run], second: Sequence[Run]) -> Systematic:
    """What a warm-up that is not over may add to one side.

    Of runs of one length both sides have the same part left of the same warm-up. If one side
    surely falls by more than the other, that may be all of its difference. Of runs of unequal
    length it is as much as twice the fall within the part that is compared, at its upper bound.
    """
    sides = (first, second)
    falls = [np.array([run.drift for run in side if run.drift is not None]) for side in sides]
    if unlike([[run.answered for run in side] for side in sides]):
        most = SETTLING * max(_upper(drifts) for drifts in falls)
        return Systematic(-most, most, "warm-up")
    difference = welch_difference(*falls)
    if difference is None or difference.p > 1 - LEVEL:
        return NOTHING
    more = SETTLING * difference.estimate
    return Systematic(min(-more, 0.0), max(-more, 0.0), "warm-up")


def _upper(values: Array) -> float:
    """The upper 95 % bound of the size of the mean drift of a condition's runs; 0 if unknown."""
    if values.size < 2:
        return 0.0
    error = float(values.std(ddof=1)) / sqrt(values.size)
    return abs(float(values.mean())) + student_quantile(values.size - 1, LEVEL) * error
