# SPDX-License-Identifier: Apache-2.0
"""From runs to numbers: what the data say about one comparison, without a word yet.

Everything is on the log scale: a difference d of logs is a ratio exp(d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, isfinite, log, log1p

import numpy as np

from tare.samples.model import Experiment, Run
from tare.stats.arrays import Array
from tare.stats.effect_size import cliffs_delta, vargha_delaney
from tare.stats.equivalence import equivalence_p
from tare.stats.fewest_runs import LEAST_PAIRED, LEAST_UNPAIRED, fewest_runs
from tare.stats.hodges_lehmann import paired_shift, unpaired_shift
from tare.stats.interval import Difference, paired_difference, welch_difference
from tare.stats.permutation import label_permutation, sign_flip
from tare.stats.power import (
    detectable,
    pooled_spread,
    runs_for,
    spread_of_differences,
    upper_spread,
)
from tare.verdict.judgement import LEVEL, Control, Cut, EffectSizes, Measured, Quantile
from tare.verdict.mismatch import LoadMismatch, holes, load_mismatch
from tare.verdict.slowest import without_slowest

LATENCIES = ("p50", "p95", "p99", "mean")
CPU = "cpu_service"
UNSTEADY = "no steady state"
MANY = 100
ONE_STEP = 1.001
"""Of the clock: two values that lie next to each other may stand for the same time."""
LARGEST = log(1e6)
"""Changes beyond which no number says more than that nothing can be told."""
LOPSIDED = 0.25
"""Share of its runs that one condition may have lost more than the other."""
MOST = 0.99
"""A threshold is a share of the baseline that can also be taken away from it."""


@dataclass(frozen=True, kw_only=True)
class Evidence(Measured):
    """All that the rules look at for one comparison."""

    paired: bool
    alpha: float
    planned: int
    """Runs of the condition with fewer of them, valid or not; pairs of runs when paired."""
    invalid: tuple[str, ...]
    """Why runs of either condition do not count, one reason a run."""
    least: int
    """Fewest runs a condition for any verdict."""
    comparisons: int
    """How many primary comparisons share the error rate."""
    p_t: float | None = None
    """Of the t test that the interval belongs to."""
    unmeasurable: bool = False
    """A run's value is zero: the source's clock is too coarse for ratios."""
    constant: bool = False
    """All requests of a run took exactly as long as each other; of few, those of all runs."""
    outlier: float = 0.0
    """The largest share of a run's mean that is one request alone."""
    body: float | None = None
    """Of the mean: the effect without the slowest ten requests of each run."""
    clock_error: float = 0.0
    """The bound on the error of durations, as a share of the baseline."""
    load: LoadMismatch | None = None
    """Of an inner span that had another load in one condition than in the other."""
    failed: tuple[int, int] = (0, 0)
    """Runs of the baseline and of the condition that do not count."""
    recorded: tuple[int, int] = (0, 0)
    """Runs of both, valid or not."""
    holes: tuple[str, ...] = ()
    """Blocks and runs of which nothing is there, and nothing says why."""
    unsteady: bool = False
    """No run of either condition came to a steady state."""
    control: Control | None = None
    """The alarm of the environment's A/A pair."""
    cuts: tuple[Cut, ...] = ()
    flipped: Cut | None = None
    """One of the cuts of the warm-up that tells something else."""
    cpu: Evidence | None = None
    around: str | None = None
    """The span around this one that does not differ, where this one by itself would."""

    @property
    def runs(self) -> int:
        """Runs of the condition that has fewer."""
        return min(self.runs_baseline, self.runs_condition)

    @property
    def significant(self) -> bool:
        """Whether the adjusted p is at most alpha and the interval excludes zero."""
        if self.p_adjusted is None or self.low is None or self.high is None:
            return False
        return self.p_adjusted <= self.alpha and (self.low > 0 or self.high < 0)

    @property
    def by_itself(self) -> bool:
        """Whether it would differ, were it all that is asked about."""
        return self.p is not None and replace(self, p_adjusted=self.p).significant

    @property
    def lopsided(self) -> bool:
        """Whether one side has lost so many more of its runs that the rest may be the better."""
        baseline, condition = (
            failed / max(whole, 1) for failed, whole in zip(self.failed, self.recorded, strict=True)
        )
        return abs(baseline - condition) > LOPSIDED

    @property
    def negligible(self) -> bool:
        """Whether the whole interval lies inside the threshold."""
        if self.low is None or self.high is None:
            return False
        return -self.threshold < self.low and self.high < self.threshold

    @property
    def clear(self) -> bool:
        """Whether the whole interval lies outside the threshold."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.threshold or self.high < -self.threshold

    @property
    def by_slowest(self) -> bool:
        """Whether a mean differs by the slowest ten requests of a run alone."""
        if self.body is None or self.relative is None or not self.significant or self.negligible:
            return False
        return abs(self.body) <= self.threshold or self.body * self.relative < 0

    @property
    def by_clock(self) -> bool:
        """Whether the clocks may be off by more than the effect, and by more than is ignored."""
        return self.clock_error > max(abs(self.relative or 0.0), self.threshold)

    @property
    def by_load(self) -> bool:
        """Whether a difference of load can have made the effect, or have hidden it."""
        if self.load is None or abs(self.load.others) <= self.threshold:
            return False
        against = (self.relative or 0.0) * self.load.others < 0
        return not (self.significant and against)

    @property
    def equivalent(self) -> bool:
        """Whether both one-sided tests at alpha place the effect inside the threshold."""
        return self.p_equivalent is not None and self.p_equivalent <= self.alpha

    @property
    def moved(self) -> tuple[Quantile, ...]:
        """The quantiles that differ by more than the threshold, of distributions that differ."""
        if self.shape is None or self.shape.p_adjusted > self.alpha:
            return ()
        return tuple(one for one in self.shape.shift if one.beyond)


def weigh(
    experiment: Experiment,
    runs: Sequence[Run],
    condition: str,
    metric: str,
    comparisons: int,
) -> Evidence:
    """The evidence in `runs` (one environment, one span) for `condition` against the baseline."""
    mine = [run for run in runs if run.condition == condition]
    base = [run for run in runs if run.condition == experiment.baseline]
    invalid = tuple(
        f"run {run.run} ({run.condition}, block {run.block}): {run.reason}"
        for run in (*base, *mine)
        if not run.valid
    )
    ours, theirs = _values(base, metric), _values(mine, metric)
    if experiment.paired:
        both = sorted(ours.keys() & theirs.keys())
        ours, theirs = ({key: side[key] for key in both} for side in (ours, theirs))
    first, second = (np.array([*side.values()], dtype=np.float64) for side in (ours, theirs))
    blank = Evidence(
        environment=runs[0].environment,
        baseline=experiment.baseline,
        condition=condition,
        span=runs[0].span,
        metric=metric,
        role="primary" if metric == experiment.primary else "exploratory",
        paired=experiment.paired,
        alpha=experiment.alpha,
        budget=experiment.budget,
        threshold=experiment.budget,
        constant=_constant(base) or _constant(mine),
        body=_body(base, mine) if metric == "mean" else None,
        outlier=_outlier([*base, *mine]) if metric == "mean" else 0.0,
        unsteady=_unsteady([*base, *mine]),
        load=load_mismatch(base, mine) if metric != CPU else None,
        holes=holes(base, mine, experiment.paired),
        failed=(_invalid(base), _invalid(mine)),
        recorded=(len(base), len(mine)),
        planned=min(len(base), len(mine)),
        runs_baseline=first.size,
        runs_condition=second.size,
        invalid=invalid,
        least=LEAST_PAIRED if experiment.paired else LEAST_UNPAIRED,
        comparisons=comparisons,
    )
    blank = replace(blank, runs_needed=_design_minimum(blank))
    if not first.size or not second.size:
        return blank
    if (first <= 0).any() or (second <= 0).any():
        return replace(blank, unmeasurable=True, runs_needed=None)
    limited = blank if metric == CPU else _limited(blank, experiment, first, [*base, *mine])
    return _measured(limited, first, second)


def _limited(
    blank: Evidence, experiment: Experiment, baseline: Array, runs: Sequence[Run]
) -> Evidence:
    """With the threshold: the budget, or the least that could be told here if that is more."""
    baseline_ns = float(np.exp(np.log(baseline).mean()))
    clock_error_ns = max(run.conduct.clock_error_ns for run in runs if run.valid)
    return replace(
        blank,
        threshold=threshold(blank, experiment, blank.metric, baseline_ns),
        clock_error=clock_error_ns / baseline_ns,
    )


def threshold(blank: Evidence, experiment: Experiment, metric: str, baseline_ns: float) -> float:
    """The budget, or the least that can be told of a metric with this value if that is more.

    What no limit is known of has that of the comparison's own metric.
    """
    known = (
        experiment.limits.get((blank.environment, blank.span, m)) for m in (metric, blank.metric)
    )
    limit = next((one for one in known if one is not None), 0.0)
    # A mean of many requests is finer than the clock that each was read from.
    step = 0.0 if metric == "mean" else ONE_STEP * experiment.resolution_ns
    return max(blank.budget, min(max(limit, step) / baseline_ns, MOST))


def _measured(blank: Evidence, first: Array, second: Array) -> Evidence:
    one, two = np.log(first), np.log(second)
    shift = float(two.mean() - one.mean())
    relative = expm1(shift)
    measured = replace(blank, relative=relative, absolute_ns=relative * exp(float(one.mean())))
    difference: Difference | None
    if blank.paired:
        difference = paired_difference(two - one)
        spread = spread_of_differences(two - one)
    else:
        difference = welch_difference(one, two)
        spread = pooled_spread(one, two)
    if difference is None or spread is None:
        return measured
    low, high = difference.interval(LEVEL)
    bounds = log1p(-blank.threshold), log1p(blank.threshold)
    # Holm holds the smallest of several p-values against this; the others are easier.
    strictest = blank.alpha / blank.comparisons
    least = detectable(spread[0], blank.runs, blank.paired, strictest)
    # Of fewer runs no p-value is as small as Holm asks for.
    tells = blank.runs >= _design_minimum(blank)
    needed = runs_for(bounds[1], upper_spread(*spread), blank.paired, strictest)
    return replace(
        measured,
        low=expm1(low),
        high=expm1(high),
        p=sign_flip(two - one) if blank.paired else label_permutation(one, two),
        p_t=difference.p,
        effect_sizes=_effect_sizes(one, two, blank.paired),
        p_equivalent=equivalence_p(difference, *bounds),
        mde=expm1(least) if tells and least is not None and least < LARGEST else None,
        runs_needed=None if needed is None else max(needed, _design_minimum(blank)),
    )


def _effect_sizes(one: Array, two: Array, paired: bool) -> EffectSizes | None:
    delta, superiority = cliffs_delta(one, two), vargha_delaney(one, two)
    if delta is None or superiority is None:
        return None
    found = paired_shift(two - one, LEVEL) if paired else unpaired_shift(one, two, LEVEL)
    low, high = (None, None) if found.interval is None else map(expm1, found.interval)
    return EffectSizes(delta, superiority, expm1(found.estimate), low, high, found.level)


def _design_minimum(blank: Evidence) -> int:
    """The fewest runs with which a change could be told at all, however clear it were."""
    return fewest_runs(blank.alpha / blank.comparisons, blank.paired)


def _invalid(runs: Sequence[Run]) -> int:
    return sum(not run.valid for run in runs)


def _constant(runs: Sequence[Run]) -> bool:
    """Of one condition. Few equal requests may be chance in a run, and are none in every run."""
    known = [run for run in runs if run.valid and run.quantiles]
    equal = [run for run in known if min(run.quantiles.values()) == max(run.quantiles.values())]
    return any(run.answered >= MANY for run in equal) or 0 < len(known) == len(equal)


def _outlier(runs: Sequence[Run]) -> float:
    """Of many requests; of few, each is a large share."""
    return max(
        (
            max(run.quantiles.values()) / run.answered / run.summaries["mean"]
            for run in runs
            if run.valid and run.answered >= MANY and run.summaries.get("mean", 0) > 0
            if run.quantiles
        ),
        default=0.0,
    )


def _body(base: Sequence[Run], mine: Sequence[Run]) -> float | None:
    first, second = ([run for run in side if run.valid] for side in (base, mine))
    means = without_slowest([*first, *second])
    if means is None or not first or not second or min(means) <= 0:
        return None
    logs = np.log(means)
    return expm1(float(logs[len(first) :].mean() - logs[: len(first)].mean()))


def _unsteady(runs: Sequence[Run]) -> bool:
    """Of all valid runs, every one: those too short to tell may well have been steady."""
    kinds = [run.steadiness for run in runs if run.valid]
    return bool(kinds) and all(kind == UNSTEADY for kind in kinds)


def _values(runs: Sequence[Run], metric: str) -> dict[tuple[int, int], float]:
    """Valid values of a metric by block; unpaired runs of one block each keep their own place."""
    found: dict[tuple[int, int], float] = {}
    for run in runs:
        value = run.summaries.get(metric)
        if run.valid and value is not None and isfinite(value):
            seen = sum(block == run.block for block, _ in found)
            found[run.block, seen] = value
    return found
