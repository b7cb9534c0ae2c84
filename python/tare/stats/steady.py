# SPDX-License-Identifier: Apache-2.0
"""Whether a run settled, and where: change points in its latency, judged from its end backwards.

The method of Barrett et al. ("Virtual Machine Warmup Blows Hot and Cold", OOPSLA 2017), which
Traini et al. ("Towards effective assessment of steady state performance in Java software", EMSE
2023) refined, with a noise level that also holds for correlated series.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite
from tare.stats.change_points import change_points
from tare.stats.warm_up import mser

Kind = Literal["flat", "warm-up", "slowdown", "no steady state"]

FEWEST = 50
"""Batches below which nothing is said: a change would stand on a handful of them."""
POINTS = 200
"""Medians of neighbouring batches are segmented, so that a hiccup of one batch is no change."""
SHORTEST = 3
"""Points that a segment has at least."""
NOISE_BLOCK = 8
"""Points over which noise forgets itself; with 4, AR(1) noise of 0.9 is taken for steps."""
PENALTY = 4.0
"""Of a change, times ln n and the long-run variance: docs/decisions/0080-steady-state.md says why.
"""
SAME = float(np.log(1.05))
"""Levels within 5 % are one level, as in Traini et al."""
WITHIN_NOISE = 2.0
"""Standard errors within which levels are one level, too."""
SETTLED = 0.75
UNLIKE = 1.1
"""Times as long as the shorter runs from which on runs are of unlike length."""
DISTURBED = 0.05
"""Share that may lie on other levels in the steady part, or be faster before it: neighbours come
and go."""


@dataclass(frozen=True)
class Segment:
    """Requests `start` to `end` - 1 of a run, and their geometric mean latency in ns."""

    start: int
    end: int
    level: float


@dataclass(frozen=True)
class Steadiness:
    """How a run went. `cut` is the request with which its steady part begins, None without one."""

    kind: Kind
    cut: int | None
    segments: tuple[Segment, ...]
    noise: float = 0.0
    """n times the variance of the mean log latency of n requests, correlated as they are."""
    worth: float | None = None
    """Independent requests that would tell the mean log latency as well; None without noise."""


def classify(
    batches: npt.ArrayLike, edges: npt.ArrayLike, within: float = 0.0
) -> Steadiness | None:
    """How a run went.

    `batches` (n,) are means of the log latency in ns, `edges` (n + 1,) the requests with which
    each batch begins and, last, the number of requests; `within` is the variance of log latencies
    around the means of their batches.

    Change points and MSER's cut divide the run into segments. Two of them are on one level when
    they differ by less than 5 %, or by less than two standard errors. The steady level is that of
    most of the second half. The steady part begins with the first segment on it after which at
    most 5 % are on another, and must begin in the first half: else there is `no steady state`.
    If what lies before it was faster for more than 5 % of the run, it is a `slowdown`; with slower
    segments there it is a `warm-up`, without either `flat`.

    None for fewer than 50 batches. Raises ValueError for NaN, infinity and edges that do not fit.
    """
    values = finite(batches)
    places = np.asarray(edges, dtype=np.int64)
    if places.shape != (values.size + 1,):
        raise ValueError(f"expected {values.size + 1} edges, found {places.shape}")
    if values.size < FEWEST:
        return None
    group = max(1, values.size // POINTS)
    count = values.size // group
    points = np.median(values[: count * group].reshape(count, group), axis=1)
    variance = long_run_variance(points)
    bounds = _bounds(points, variance, (mser(values) or 0) // group)
    lengths = np.diff(bounds)
    levels = np.add.reduceat(points, bounds[:-1]) / lengths
    close = WITHIN_NOISE * np.sqrt(variance * (1 / lengths[:, None] + 1 / lengths))
    difference = levels[:, None] - levels
    one_level = np.abs(difference) <= np.maximum(SAME, close)

    in_second_half = np.clip(bounds[1:] - np.maximum(bounds[:-1], count / 2), 0, None)
    steady = int(np.argmax(one_level @ in_second_half))
    on_it = one_level[steady]
    share = np.cumsum((lengths * on_it)[::-1])[::-1] / (count - bounds[:-1])
    begins = int(np.argmax(on_it & (share >= 1 - DISTURBED)))

    ends = places[np.append(bounds[:-1] * group, values.size)]
    segments = tuple(
        Segment(int(start), int(end), float(np.exp(level)))
        for start, end, level in zip(ends[:-1], ends[1:], levels, strict=True)
    )
    # Medians of normal batches scatter more than their means do.
    means = values[: count * group].reshape(count, group).mean(axis=1)
    size = float(places[-1])
    noise = long_run_variance(means) * size / count
    worth = min(size, size * (within + float(values.var())) / noise) if noise > 0 else None
    settled = on_it[begins] and share[begins] >= 1 - DISTURBED and bounds[begins] <= count / 2
    if not settled:
        return Steadiness("no steady state", None, segments, noise, worth)
    if begins == 0:
        return Steadiness("flat", 0, segments, noise, worth)
    before = difference[:begins, steady] * ~on_it[:begins]
    faster = lengths[:begins][before < 0].sum() > DISTURBED * count
    kind: Kind = "slowdown" if faster else "warm-up" if (before > 0).any() else "flat"
    return Steadiness(kind, segments[begins].start, segments, noise, worth)


def common_share(conditions: Iterable[Iterable[Steadiness]]) -> float:
    """The share of every run from which the runs of all conditions are compared: half at most.

    From then on at least three of four runs of each condition are no more seen to settle. A warm-up
    comes in every run; runs that shifted late, as few of their siblings did, do not take half of
    all runs with them. Runs without a steady state are never seen to settle. Where conditions have
    runs of unlike lengths, what is left of a warm-up does not cancel between them: half is left out
    as soon as there is a warm-up.
    """
    known = [[*runs] for runs in conditions]
    shares = [sorted((run.cut or 0) / run.segments[-1].end for run in runs) for runs in known]
    latest = max((cuts[ceil(SETTLED * len(cuts)) - 1] for cuts in shares if cuts), default=0.0)
    if latest and unlike([[run.segments[-1].end for run in runs] for runs in known]):
        return 0.5
    return min(latest, 0.5)


def unlike(lengths: Iterable[Sequence[float]]) -> bool:
    """Whether the median runs of conditions differ in length by more than 10 %."""
    medians = [float(np.median(runs)) for runs in lengths if len(runs)]
    return bool(medians) and max(medians) > UNLIKE * min(medians)


def drift(batches: npt.ArrayLike, edges: npt.ArrayLike, first: int) -> float | None:
    """How much the level still falls from request `first` on, in logarithms.

    The median batch of the first half of what is left, less that of the second: of a decay that
    is over by the end of the run, about what it adds to the mean level. `batches` and `edges` are
    as for `classify`. None for fewer than two batches in each half.
    """
    values = finite(batches)[np.asarray(edges)[:-1] >= first]
    half = values.size // 2
    if half < 2:
        return None
    return float(np.median(values[:half]) - np.median(values[half:]))


def of_condition(runs: Iterable[Steadiness]) -> Kind | Literal["inconsistent"] | None:
    """What all runs of a condition are, `inconsistent` where they differ, None without runs."""
    kinds = {run.kind for run in runs}
    if len(kinds) > 1:
        return "inconsistent"
    return kinds.pop() if kinds else None


def long_run_variance(points: npt.ArrayLike) -> float:
    """What n times the variance of the mean of n points tends to, of a series (n,) with n >= 16.

    From differences of neighbouring means of 8 points (Wu and Zhao 2007), all overlapping pairs of
    them: their lower quartile, not the median, so that even many changes of the level hardly move
    it. Raises ValueError for fewer points.
    """
    values = finite(points, 2 * NOISE_BLOCK)
    total = np.concatenate([[0.0], np.cumsum(values - values.mean())])
    means = (total[NOISE_BLOCK:] - total[:-NOISE_BLOCK]) / NOISE_BLOCK
    differences = np.abs(means[NOISE_BLOCK:] - means[:-NOISE_BLOCK])
    # A quarter of a normal variable's absolute values is below 0.3186 standard deviations; a
    # difference has twice the variance of a mean.
    return float((np.quantile(differences, 0.25) / 0.3186) ** 2 * NOISE_BLOCK / 2)


def _bounds(points: Array, variance: float, warm: int) -> npt.NDArray[np.int64]:
    """Where segments begin, and the end: changes of the mean, and MSER's cut if it is as clear.

    `warm` is the number of points before MSER's cut.
    """
    # A series without any noise has no penalty; it must be above zero.
    penalty = max(PENALTY * np.log(points.size) * variance, 1e-12)
    changes = {*change_points(points, penalty, SHORTEST)}
    if warm:
        # What is asked of every change: that it takes more than the penalty off the sum of squares.
        step = points[:warm].mean() - points[warm:].mean()
        if step**2 > penalty * (1 / warm + 1 / (points.size - warm)):
            changes.add(warm)
    return np.array(sorted(changes), dtype=np.int64)
