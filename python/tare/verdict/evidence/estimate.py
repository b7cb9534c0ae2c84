# SPDX-License-Identifier: Apache-2.0
"""From runs to numbers: the evidence for one comparison.

Everything is on the log scale: a difference d of logs is a ratio exp(d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, expm1, isfinite, log, log1p
from statistics import fmean, median

import numpy as np

from tare.samples.model import ERROR_RATE, Experiment, Run
from tare.samples.notes import grouped
from tare.stats.arrays import Array
from tare.stats.effect_size import cliffs_delta, vargha_delaney
from tare.stats.equivalence import equivalence_p
from tare.stats.fewest_runs import LEAST_PAIRED, LEAST_UNPAIRED, fewest_runs
from tare.stats.hodges_lehmann import paired_shift, unpaired_shift
from tare.stats.interval import Difference, paired_difference, welch_difference
from tare.stats.permutation import label_permutation, sign_flip
from tare.stats.power import Design, pooled_spread, spread_of_differences
from tare.stats.quantile import supported
from tare.verdict.evidence.condition_mismatch import holes, load_mismatch
from tare.verdict.evidence.evidence import LATENCIES, TAILS, Evidence, Values
from tare.verdict.evidence.systematic import rounding, warm_up
from tare.verdict.judgement import LEVEL, EffectSizes

MANY = 100
STALLED = (*TAILS, "mean")
"""What stalls from outside decide, of which a slower condition meets more per request."""
LARGEST = log(1e6)
"""Changes beyond which no number says more than that nothing can be told."""
ERRORS = 0.001
"""The budget of an error rate: a tenth of a per cent of all requests."""
MOST = 0.99
"""A threshold is a share of the baseline that can also be taken away from it."""


def estimate(
    experiment: Experiment,
    runs: Sequence[Run],
    condition: str,
    metric: str,
    families: int = 1,
) -> Evidence:
    """The evidence in `runs` (one environment, one span) for `condition` against the baseline."""
    mine = [run for run in runs if run.condition == condition]
    base = [run for run in runs if run.condition == experiment.baseline]
    failed = [(run.condition, *run.failure) for run in (*base, *mine) if not run.valid]
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
        threshold=ERRORS if metric == ERROR_RATE else experiment.budget,
        constant=_constant(base) or _constant(mine),
        load=load_mismatch(base, mine, experiment.traces) if metric in LATENCIES else None,
        holes=holes(base, mine, experiment.paired),
        failing=_failing(mine) - _failing(base),
        failed=(_invalid(base), _invalid(mine)),
        recorded=(len(base), len(mine)),
        planned=min(len(base), len(mine)),
        runs_baseline=first.size,
        runs_condition=second.size,
        invalid=tuple(grouped(failed, "run")),
        disturbed=_disturbed(base, metric) + _disturbed(mine, metric),
        least=LEAST_PAIRED if experiment.paired else LEAST_UNPAIRED,
        families=families,
    )
    blank = replace(blank, runs_needed=_design_minimum(blank))
    if not first.size or not second.size:
        return blank
    if (first <= 0).any() or (second <= 0).any():
        return replace(blank, zero=True, runs_needed=None)
    logs = [{key: log(value) for key, value in side.items()} for side in (ours, theirs)]
    blank = replace(blank, values=(logs[0], logs[1]))
    if metric in LATENCIES:
        blank = _limited(blank, experiment, _counted(base, ours), _counted(mine, theirs))
    measured = _measured(blank)
    return _of_failures(measured) if metric == ERROR_RATE else measured


def _counted(runs: Sequence[Run], values: Values) -> list[Run]:
    """Those of one condition's runs that have `values`."""
    return [run for key, run in by_block(runs).items() if key in values]


def _limited(
    blank: Evidence, experiment: Experiment, base: Sequence[Run], mine: Sequence[Run]
) -> Evidence:
    """With the threshold, and with what limits these runs however many they are."""
    metric = blank.metric
    baseline_ns = exp(fmean(blank.values[0].values()))
    clock_error_ns = max(run.load_stats.clock_error_ns for run in (*base, *mine))
    place = blank.environment, blank.span
    width = experiment.widths.get((*place, metric), 0.0)
    return replace(
        blank,
        threshold=threshold(blank, experiment, metric, baseline_ns),
        clock_error=clock_error_ns / baseline_ns,
        systematic=rounding(base, mine, lambda run: run.summaries[metric]) + warm_up(base, mine),
        thin_tail=_thin_tail(base, metric) or _thin_tail(mine, metric),
        step=max(width, *(run.step_ns for run in (*base, *mine))) / baseline_ns,
    )


def threshold(blank: Evidence, experiment: Experiment, metric: str, baseline_ns: float) -> float:
    """The budget, or the least that can be detected of a metric with this value if that is more.

    A metric without a known limit has that of the comparison's own metric.
    """
    names = (metric, blank.metric)
    places = [(blank.environment, blank.span, name) for name in names]
    found = (
        next((known[place] for place in places if place in known), 0.0)
        for known in (experiment.limits, experiment.widths)
    )
    return max(blank.budget, min(max(found) / baseline_ns, MOST))


def _measured(blank: Evidence) -> Evidence:
    first, second = _arrays(blank)
    shift = float(second.mean() - first.mean())
    baseline, condition = exp(float(first.mean())), exp(float(second.mean()))
    measured = replace(
        blank, baseline_value=baseline, condition_value=condition, relative=expm1(shift)
    )
    difference: Difference | None
    difference = (
        paired_difference(second - first) if blank.paired else welch_difference(first, second)
    )
    if difference is None:
        return measured
    low, high = difference.interval(LEVEL)
    unsure = blank.systematic
    bounds = log1p(-blank.threshold) - unsure.low, log1p(blank.threshold) - unsure.high
    return replace(
        measured,
        low=expm1(low + unsure.low),
        high=expm1(high + unsure.high),
        p=sign_flip(second - first) if blank.paired else label_permutation(first, second),
        p_t=difference.p,
        p_equivalent=equivalence_p(difference, *bounds) if bounds[0] < bounds[1] else 1.0,
    )


def _of_failures(success: Evidence) -> Evidence:
    """The evidence about the share of failed requests, from that about the share of the others."""
    whole, condition = success.baseline_value, success.condition_value
    if whole is None or condition is None:
        return success

    def points(relative: float | None) -> float | None:
        return None if relative is None else -relative * whole

    return replace(
        success,
        baseline_value=1 - whole,
        condition_value=1 - condition,
        relative=points(success.relative),
        low=points(success.high),
        high=points(success.low),
    )


def with_outlook(evidence: Evidence, family: float = 1.0) -> Evidence:
    """With the effect by order alone, what these runs could have seen, and what more would show.

    `family` is as in `tare.stats.power.Design`.
    """
    if evidence.p is None or evidence.unit == "share":
        return evidence
    first, second = _arrays(evidence)
    evidence = replace(evidence, effect_sizes=_effect_sizes(first, second, evidence.paired))
    spread = (
        spread_of_differences(second - first) if evidence.paired else pooled_spread(first, second)
    )
    if spread is None or evidence.runs < evidence.least:
        return evidence
    design = Design(
        *spread,
        evidence.paired,
        evidence.alpha / evidence.families,
        log1p(evidence.threshold),
        evidence.systematic.high,
        family,
    )
    least = design.detectable(evidence.runs)
    seen = abs(float(second.mean() - first.mean()))
    to_see = seen > log1p(evidence.threshold)
    needed = design.runs_to_see(seen) if to_see else design.runs_to_show(seen)
    return replace(
        evidence,
        mde=expm1(least) if least is not None and least < LARGEST else None,
        runs_needed=None if needed is None else max(needed, _design_minimum(evidence)),
        runs_show="difference" if to_see else "no difference",
    )


def _arrays(evidence: Evidence) -> tuple[Array, Array]:
    first, second = (np.array([*side.values()]) for side in evidence.values)
    return first, second


def _effect_sizes(first: Array, second: Array, paired: bool) -> EffectSizes | None:
    delta, superiority = cliffs_delta(first, second), vargha_delaney(first, second)
    if delta is None or superiority is None:
        return None
    found = paired_shift(second - first, LEVEL) if paired else unpaired_shift(first, second, LEVEL)
    low, high = (None, None) if found.interval is None else map(expm1, found.interval)
    return EffectSizes(delta, superiority, expm1(found.estimate), low, high, found.level)


def _design_minimum(blank: Evidence) -> int:
    """The fewest runs with which a change can be found at all, however clear it is."""
    return fewest_runs(blank.alpha / blank.families, blank.paired)


def _thin_tail(runs: Sequence[Run], metric: str) -> bool:
    """Of the median run. How many independent requests it is worth is known to a factor of two."""
    at = TAILS.get(metric)
    if at is None:
        return False
    requests = median(run.answered for run in runs)
    worth = median(run.worth or run.answered for run in runs)
    return not supported(min(requests, 2 * worth), at)


def _failing(runs: Sequence[Run]) -> float:
    """The share of failed requests of one condition's valid runs."""
    valid = [run for run in runs if run.valid]
    return sum(run.errors for run in valid) / max(1, sum(run.requests for run in valid))


def _disturbed(runs: Sequence[Run], metric: str) -> int:
    return sum(run.valid and run.disturbed for run in runs) if metric in STALLED else 0


def _invalid(runs: Sequence[Run]) -> int:
    return sum(not run.valid for run in runs)


def _constant(runs: Sequence[Run]) -> bool:
    """Of one condition. Few equal requests may be chance in a run, and are none in every run."""
    known = [run for run in runs if run.valid and run.quantiles]
    equal = [run for run in known if min(run.quantiles.values()) == max(run.quantiles.values())]
    return any(run.answered >= MANY for run in equal) or 0 < len(known) == len(equal)


def by_block(runs: Sequence[Run]) -> dict[tuple[int, int], Run]:
    """One condition's valid runs by their block and their place among those of that block."""
    found: dict[tuple[int, int], Run] = {}
    for run in runs:
        if run.valid:
            found[run.block, sum(block == run.block for block, _ in found)] = run
    return found


def _values(runs: Sequence[Run], metric: str) -> Values:
    values = {
        key: run.summaries.get(metric)
        for key, run in by_block(runs).items()
        if not _disturbed([run], metric)
    }
    known = {key: value for key, value in values.items() if value is not None and isfinite(value)}
    # The share of failed requests is often 0, which has no logarithm; that of the others is not.
    return {key: 1 - value for key, value in known.items()} if metric == ERROR_RATE else known
