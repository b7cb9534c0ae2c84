# SPDX-License-Identifier: Apache-2.0
"""From the runs of a calibration to what each statistic detects.

A repetition is a group of blocks that follow each other, as many as an experiment has; in each, a
delay is compared with none by every statistic. Groups have no block in common, so that repetitions
are independent and the share of those that detect a delay has an exact interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from tare.calibration.detection import (
    BETWEEN_RUNS,
    SINGLE_PAIRS,
    STATISTICS,
    SUMMARIES,
    Detection,
    Range,
    Step,
)
from tare.errors import InputError, TareError
from tare.samples.model import REQUEST, SpanKey
from tare.stats.distance_permutations import comparable, run_distance_p
from tare.stats.distances import between
from tare.stats.fewest_runs import fewest_runs
from tare.stats.interval import paired_difference
from tare.stats.permutation import sign_flip
from tare.stats.two_samples import anderson_darling, kolmogorov_smirnov
from tare.verdict.judgement import LEVEL
from tare.verdict.number_text import count, duration

if TYPE_CHECKING:
    from tare.samples.read.latencies import Runs
    from tare.stats.arrays import Array

_SURE = 0.99
_LEAST = 2
"""Requests of a run, below which it has no distance to another."""
_PERCENTILES = {"p50": 50, "p95": 95, "p99": 99}


@dataclass(frozen=True)
class _Pair:
    """The latencies in ns of one block: without the delay, and with it."""

    block: int
    without: Array
    slowed: Array


@dataclass(frozen=True)
class _Outcome:
    """What one statistic says in one repetition."""

    p: float
    value: float | None
    detected: bool


def check_blocks(blocks: int, alpha: float) -> None:
    """Raises InputError where so few blocks could not detect anything, however large."""
    least = fewest_runs(alpha, paired=True)
    if blocks < least:
        raise InputError(
            f"{count(blocks, 'block')} per repetition cannot detect any delay at alpha {alpha:g};"
            f" give --blocks {least} or more"
        )


def detect(
    places: Mapping[SpanKey, Runs],
    steps: Mapping[int, str],
    baseline: str,
    blocks: int,
    alpha: float,
) -> tuple[Detection, ...]:
    """What each statistic detects in each place.

    `steps` maps delays in ns, 0 among them, to their conditions; `blocks` make one repetition.
    Raises TareError where no repetition with a delay has enough valid blocks, or where the service
    does not follow the largest that was measured.
    """
    found: list[Detection] = []
    for (environment, span), runs in places.items():
        names = (*STATISTICS, *SINGLE_PAIRS)
        taken: dict[str, list[Step]] = {name: [] for name in names}
        largest: tuple[list[_Pair], int] | None = None
        for delay, condition in sorted(steps.items()):
            pairs = _pairs(runs, baseline, condition)
            outcomes = _outcomes(pairs, delay, blocks, alpha)
            if delay and any(outcomes[name] for name in STATISTICS):
                largest = pairs, delay
            for name in names:
                taken[name].append(_step(delay, outcomes[name]))
        if span == REQUEST and largest is not None:
            _check_that_it_follows(*largest)
        medians = [float(np.median(of)) for (name, _), of in runs.items() if name == baseline]
        found += [
            Detection(environment, span, name, median(medians), alpha, tuple(by_delay))
            for name, by_delay in taken.items()
            if medians
        ]
    if not any(detection.measured for detection in found if detection.statistic in STATISTICS):
        raise TareError(
            "no repetition with a delay has enough valid blocks; see the reasons in manifest.json"
        )
    return tuple(found)


def _pairs(runs: Runs, baseline: str, condition: str) -> list[_Pair]:
    return [
        _Pair(block, without, runs[condition, block])
        for (name, block), without in sorted(runs.items())
        if name == baseline and (condition, block) in runs
        if min(without.size, runs[condition, block].size) >= _LEAST
    ]


def _outcomes(
    pairs: Sequence[_Pair], delay: int, blocks: int, alpha: float
) -> dict[str, list[_Outcome]]:
    """Of every statistic, one outcome a repetition, or a pair of runs."""
    groups: dict[int, list[_Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.block - 1) // blocks, []).append(pair)
    least = fewest_runs(alpha, paired=True)
    whole = [group for group in groups.values() if len(group) >= least]
    found = {
        name: [outcome for group in whole if (outcome := _by_summary(name, group, delay, alpha))]
        for name in SUMMARIES
    }
    between = [_by_distances(group, alpha) for group in whole]
    single = [_by_pair(pair, alpha) for pair in pairs]
    found |= {name: [outcomes[name] for outcomes in between] for name in BETWEEN_RUNS}
    return found | {
        name: [outcomes[name] for outcomes in single if name in outcomes] for name in SINGLE_PAIRS
    }


def _step(delay: int, outcomes: Sequence[_Outcome]) -> Step:
    values = [outcome.value for outcome in outcomes if outcome.value is not None]
    return Step(
        delay_ns=delay,
        detected=sum(outcome.detected for outcome in outcomes),
        repetitions=len(outcomes),
        p=Range.of([outcome.p for outcome in outcomes]),
        value=Range.of(values),
    )


def _by_summary(name: str, group: Sequence[_Pair], delay: int, alpha: float) -> _Outcome | None:
    """Tare's own test of a summary, as a verdict asks: sign flips and an interval without 0.

    What makes a request faster is no delay. None where a run's summary is 0: it has no logarithm.
    """
    ours, theirs = (
        np.array([_summary(name, values) for values in side])
        for side in ([pair.without for pair in group], [pair.slowed for pair in group])
    )
    if min(ours.min(), theirs.min()) <= 0:
        return None
    logs = np.log(theirs) - np.log(ours)
    difference = paired_difference(logs)
    assert difference is not None  # there are several blocks
    low, high = difference.interval(LEVEL)
    p = sign_flip(logs)
    apart = low > 0 or (delay == 0 and high < 0)
    return _Outcome(p, float((theirs - ours).mean()), p <= alpha and apart)


def _summary(name: str, latencies: Array) -> float:
    if name == "mean":
        return float(latencies.mean())
    return float(np.percentile(latencies, _PERCENTILES[name]))


def _by_distances(group: Sequence[_Pair], alpha: float) -> dict[str, _Outcome]:
    """Tare's own test of whole distributions: labels of runs change places within blocks."""
    runs = [pair.without for pair in group] + [pair.slowed for pair in group]
    slowed = np.repeat([False, True], len(group))
    blocks = np.tile([pair.block for pair in group], 2)
    distances = between(runs, BETWEEN_RUNS)
    sizes = [run.size for run in runs]
    found = {}
    for name in BETWEEN_RUNS:
        p = run_distance_p(comparable(name, distances[name], sizes), slowed, blocks)
        assert p is not None  # there are several blocks, each with both
        found[name] = _Outcome(p, None, p <= alpha)
    return found


def _by_pair(pair: _Pair, alpha: float) -> dict[str, _Outcome]:
    """The published tests of one run against one, from all of their requests."""
    tests = zip(SINGLE_PAIRS, (kolmogorov_smirnov, anderson_darling), strict=True)
    outcomes = {name: test(pair.without, pair.slowed) for name, test in tests}
    return {
        name: _Outcome(outcome.p, outcome.statistic, outcome.p <= alpha)
        for name, outcome in outcomes.items()
        if outcome is not None
    }


def _check_that_it_follows(pairs: Sequence[_Pair], delay: int) -> None:
    """Raises TareError where the p50 surely moved by less than half or more than ten times.

    More than once is no error: a busy-wait that loses the CPU to others takes longer.
    """
    moved = [float(np.median(pair.slowed) - np.median(pair.without)) for pair in pairs]
    difference = paired_difference(moved)
    if difference is None:
        return
    low, high = difference.interval(_SURE)
    if high < delay / 2 or low > delay * 10:
        question = "does it read" if high < delay / 2 else "are microseconds meant by"
        raise TareError(
            f"the service does not follow the delay: {duration(delay)} more changed its p50 by"
            f" {duration(difference.estimate, signed=True)} ({duration(low, signed=True)} to"
            f" {duration(high, signed=True)}); {question} the variable of [calibration]?"
        )
