# SPDX-License-Identifier: Apache-2.0
"""What is left out as warm-up, where it differs between conditions: that is an effect, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log, log1p
from statistics import fmean

import numpy as np

from tare.samples.model import Experiment, Run
from tare.stats.interval import paired_difference, welch_difference
from tare.verdict.evidence.estimate import by_block
from tare.verdict.judgement import LEVEL, Cut, Word
from tare.verdict.number_text import percent

MUCH = 0.25
"""Share of a run whose difference forbids that the rest is `unchanged`."""


@dataclass(frozen=True)
class WarmUpDifference:
    """By how much the warm-up of a condition surely differs from the baseline's."""

    share: float
    """Of the requests of a run."""
    relative: float
    low: float
    high: float

    def cuts(self) -> list[Cut]:
        """What the same runs say of this part alone; nothing where it is small."""
        if self.share < MUCH:
            return []
        word: Word = "slower" if self.relative > 0 else "faster"
        part = percent(self.share, signed=False)
        return [Cut(f"all but the first {part}", word, self.relative, self.low, self.high)]


def warm_up_difference(
    experiment: Experiment, runs: Sequence[Run], condition: str
) -> WarmUpDifference | None:
    """Of `runs` (one environment, one span); None where they may be alike to within the budget."""
    first, second = (
        {
            key: run.beginning
            for key, run in by_block([run for run in runs if run.condition == name]).items()
            if run.beginning is not None and run.beginning.mean_ns > 0
        }
        for name in (experiment.baseline, condition)
    )
    if experiment.paired:
        both = sorted(first.keys() & second.keys())
        first, second = ({key: side[key] for key in both} for side in (first, second))
    first_logs, second_logs = (
        np.array([log(part.mean_ns) for part in side.values()]) for side in (first, second)
    )
    difference = (
        paired_difference(second_logs - first_logs)
        if experiment.paired
        else welch_difference(first_logs, second_logs)
    )
    if difference is None:
        return None
    low, high = difference.interval(LEVEL)
    if low <= log1p(experiment.budget) and high >= log1p(-experiment.budget):
        return None
    share = fmean(part.share for part in (*first.values(), *second.values()))
    return WarmUpDifference(share, expm1(difference.estimate), expm1(low), expm1(high))
