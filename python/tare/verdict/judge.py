# SPDX-License-Identifier: Apache-2.0
"""From an experiment to its judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.model import Experiment, Run
from tare.stats.multiplicity import benjamini_hochberg
from tare.verdict.evidence.adjusted import adjusted, family_factors
from tare.verdict.evidence.estimate import estimate, with_outlook
from tare.verdict.evidence.evidence import CPU, EXPLORED, LATENCIES, Evidence
from tare.verdict.evidence.outside_root import outside_root
from tare.verdict.evidence.shape import with_shapes
from tare.verdict.evidence.trace_parts import compared_traces
from tare.verdict.evidence.warm_up_difference import warm_up_difference
from tare.verdict.judgement import Comparison, Control, Cut, Judgement, Measured
from tare.verdict.rules import rules, warnings
from tare.verdict.rules.control import controls, without_control
from tare.verdict.rules.cuts import with_cuts
from tare.verdict.rules.failures import without_bad_runs
from tare.verdict.rules.interim_analyses import interim_analyses

if TYPE_CHECKING:
    from tare.samples.manifest import Compare

ComparisonKey = tuple[str, str, str]


def judge(experiment: Experiment) -> Judgement:
    """Compares every condition with the baseline, in every environment, span and metric.

    The primary metric carries the verdict, with p-values adjusted together over all its
    comparisons; the other metrics are exploratory, adjusted by Benjamini-Hochberg. Raises
    InputError when there is no baseline, nothing to compare it with, or no such metric.
    """
    return judge_together({"": experiment})


def judge_together(
    experiments: Mapping[str, Experiment], disturbed: Sequence[Control] = ()
) -> Judgement:
    """Judges several experiments as `judge` does one, with the error rates held over all of them.

    Warnings begin with the name of their experiment. No two have a condition in common. Alarms
    among `disturbed` are of controls that are in none of them, and forbid verdicts of all.
    """
    experiments = {name: without_bad_runs(experiment) for name, experiment in experiments.items()}
    outcomes = {name: controls(experiment) for name, experiment in experiments.items()}
    alarms = [
        (name, control) for name, found in outcomes.items() for control in found if control.alarm
    ]
    alarms += [(name, control) for name in experiments for control in disturbed if control.alarm]
    known = {name: without_control(experiment) for name, experiment in experiments.items()}
    for experiment in known.values():
        _check(experiment)
    exploratory = _exploratory(known)
    cpu = {
        _key_of(comparison): comparison for comparison in exploratory if comparison.metric == CPU
    }
    primary = [
        replace(comparison, cpu=cpu.get(_key_of(comparison))) for comparison in _primary(known)
    ]
    every = [
        with_outlook(comparison, family)
        for comparison, family in zip(primary, family_factors(primary), strict=True)
    ] + [with_outlook(comparison) for comparison in exploratory]
    for name, control in alarms:
        conditions = {run.condition for run in known[name].runs}
        every = [
            replace(comparison, control=control)
            if comparison.environment == control.environment and comparison.condition in conditions
            else comparison
            for comparison in every
        ]
    compare = next(iter(experiments.values())).compare
    cuts = _cuts(known)
    every = [
        with_cuts(comparison, cuts.get((_key_of(comparison), comparison.metric), ()))
        for comparison in every
    ]
    return Judgement(
        tuple(_compared(comparison, compare) for comparison in every),
        tuple(
            _named(name, line)
            for name, experiment in known.items()
            for line in (
                *warnings.unguarded(experiments[name]),
                *interim_analyses(experiment, len(primary)),
                *_warnings(experiment, every),
                *experiment.warnings,
            )
        ),
        controls=tuple(control for found in outcomes.values() for control in found),
        smoke=any(experiment.smoke for experiment in experiments.values()),
        compare=compare,
        traces=tuple(
            traced
            for name, experiment in known.items()
            for traced in compared_traces(
                experiment, {control.environment for of, control in alarms if of == name}
            )
        ),
        round_trips=tuple(
            trip for experiment in known.values() for trip in outside_root(experiment)
        ),
    )


def _primary(experiments: Mapping[str, Experiment]) -> list[Evidence]:
    """Of the primary metrics, with adjusted p-values and the shapes of their distributions."""
    compared = [
        (name, experiment, condition, runs)
        for name, experiment in experiments.items()
        for condition, runs in _places(experiment)
    ]
    family = [
        name if experiment.paired else (name, runs[0].environment, condition)
        for name, experiment, condition, runs in compared
    ]
    families = len(set(family))
    found = [
        replace(estimate(experiment, runs, condition, experiment.primary, families), family=its)
        for its, (_, experiment, condition, runs) in zip(family, compared, strict=True)
    ]
    return with_shapes(adjusted(found), [experiment for _, experiment, *_ in compared])


def _exploratory(experiments: Mapping[str, Experiment]) -> list[Evidence]:
    """Of all other metrics."""
    found = [
        estimate(experiment, runs, condition, metric)
        for experiment in experiments.values()
        for condition, runs in _places(experiment)
        for metric in EXPLORED
        if metric != experiment.primary and any(metric in run.summaries for run in runs)
    ]
    return _by_false_discoveries(found)


def _cuts(experiments: Mapping[str, Experiment]) -> dict[tuple[ComparisonKey, str], list[Cut]]:
    """What each comparison says with other ends of the warm-up, by its metric."""
    found: dict[tuple[ComparisonKey, str], list[Cut]] = {}
    names = dict.fromkeys(name for experiment in experiments.values() for name in experiment.cuts)
    for name in names:
        having = {
            key: experiment.cuts[name]
            for key, experiment in experiments.items()
            if name in experiment.cuts
        }
        for evidence in (*_primary(having), *_exploratory(having)):
            word, _ = rules.apply(evidence)
            cut = Cut(name, word, evidence.relative, evidence.low, evidence.high)
            found.setdefault((_key_of(evidence), evidence.metric), []).append(cut)
    for experiment in experiments.values():
        for condition, runs in _places(experiment):
            apart = warm_up_difference(experiment, runs, condition)
            alone = [] if apart is None else apart.cuts()
            place = runs[0].environment, condition, runs[0].span
            for metric in LATENCIES:
                found.setdefault((place, metric), []).extend(alone)
    return found


def _warnings(experiment: Experiment, evidence: Sequence[Evidence]) -> list[str]:
    conditions = {run.condition for run in experiment.runs}
    return warnings.warnings(
        experiment, [comparison for comparison in evidence if comparison.condition in conditions]
    )


def _named(name: str, line: str) -> str:
    return type(line)(f"{name}: {line}" if name else line)


def _check(experiment: Experiment) -> None:
    names = {run.condition for run in experiment.runs}
    if experiment.baseline not in names:
        raise InputError(f"no runs of the baseline '{experiment.baseline}': nothing to compare")
    if len(names) < 2:
        raise InputError(f"only runs of '{experiment.baseline}': name a condition to compare")
    if not 0 < experiment.budget < 1:
        raise InputError(f"the budget is {experiment.budget:g}; expected between 0 % and 100 %")
    if not 0 < experiment.alpha < 1:
        raise InputError(f"alpha is {experiment.alpha:g}; expected a number between 0 and 1")
    known = {name for run in experiment.runs if run.valid for name in run.summaries}
    if known and experiment.primary not in known:
        raise InputError(
            f"no metric '{experiment.primary}'; expected one of {', '.join(sorted(known))}"
        )


def _places(experiment: Experiment) -> list[tuple[str, list[Run]]]:
    """What is compared: a condition, and all runs of its environment and span."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in experiment.runs:
        groups.setdefault((run.environment, run.span), []).append(run)
    return [
        (condition, runs)
        for runs in groups.values()
        if any(run.condition == experiment.baseline for run in runs)
        for condition in dict.fromkeys(run.condition for run in runs)
        if condition != experiment.baseline
    ]


def _by_false_discoveries(evidence: Sequence[Evidence]) -> list[Evidence]:
    p = iter(
        benjamini_hochberg(
            [comparison.p for comparison in evidence if comparison.p is not None]
        ).tolist()
    )
    return [
        comparison if comparison.p is None else replace(comparison, p_adjusted=next(p))
        for comparison in evidence
    ]


def _key_of(evidence: Evidence) -> ComparisonKey:
    return evidence.environment, evidence.condition, evidence.span


def _compared(evidence: Evidence, compare: Compare) -> Comparison:
    word, reason = rules.apply(evidence)
    numbers = {field.name: getattr(evidence, field.name) for field in fields(Measured)}
    if word != "inconclusive":
        numbers["runs_needed"] = numbers["runs_show"] = None
    return Comparison(**numbers, verdict=word, reason=reason, cuts=evidence.cuts, compare=compare)
