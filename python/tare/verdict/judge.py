# SPDX-License-Identifier: Apache-2.0
"""From an experiment to its judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

from tare.errors import InputError
from tare.samples.model import Experiment, Run
from tare.stats.arrays import Array
from tare.stats.multiplicity import benjamini_hochberg, holm
from tare.verdict import checks, rules
from tare.verdict.evidence import CPU, LATENCIES, Evidence, weigh
from tare.verdict.judgement import Comparison, Judgement, Measured

Place = tuple[str, str, str]


def judge(experiment: Experiment) -> Judgement:
    """Compares every condition with the baseline, in every environment, span and metric.

    The primary metric carries the verdict, with p-values adjusted by Holm over all its
    comparisons; the other metrics are exploratory, adjusted by Benjamini-Hochberg. Raises
    InputError when there is no baseline, nothing to compare it with, or no such metric.
    """
    return judge_together({"": experiment})


def judge_together(experiments: Mapping[str, Experiment]) -> Judgement:
    """Judges several experiments as `judge` does one, with the error rates held over all of them.

    Warnings begin with the name of their experiment. No two have a condition in common.
    """
    primary: list[Evidence] = []
    exploratory: list[Evidence] = []
    compared = [_places(experiment) for experiment in experiments.values()]
    count = sum(map(len, compared))
    for experiment, places in zip(experiments.values(), compared, strict=True):
        _check(experiment)
        metrics = [
            name
            for name in (*LATENCIES, CPU)
            if name != experiment.primary and any(name in run.summaries for run in experiment.runs)
        ]
        primary += [
            weigh(experiment, runs, condition, experiment.primary, count)
            for condition, runs in places
        ]
        exploratory += [
            weigh(experiment, runs, condition, metric, 1)
            for condition, runs in places
            for metric in metrics
            if any(metric in run.summaries for run in runs)
        ]
    primary = _adjusted(primary, holm)
    exploratory = _adjusted(exploratory, benjamini_hochberg)
    primary = [_with_company(one, exploratory) for one in primary]
    every = [*primary, *exploratory]
    return Judgement(
        tuple(_compared(one) for one in every),
        tuple(
            f"{name}: {line}" if name else line
            for name, experiment in experiments.items()
            for line in (*experiment.warnings, *_warnings(experiment, every))
        ),
    )


def _warnings(experiment: Experiment, evidence: Sequence[Evidence]) -> list[str]:
    conditions = {run.condition for run in experiment.runs}
    return checks.warnings(experiment, [one for one in evidence if one.condition in conditions])


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


def _adjusted(
    evidence: Sequence[Evidence], method: Callable[[list[float]], Array]
) -> list[Evidence]:
    known = [one.p for one in evidence if one.p is not None]
    adjusted = iter(method(known).tolist())
    return [one if one.p is None else replace(one, p_adjusted=next(adjusted)) for one in evidence]


def _with_company(primary: Evidence, exploratory: Sequence[Evidence]) -> Evidence:
    def place(one: Evidence) -> Place:
        return one.environment, one.condition, one.span

    near = [one for one in exploratory if place(one) == place(primary)]
    moved = [
        one
        for one in near
        if one.metric in LATENCIES
        and one.runs >= one.least
        and one.significant
        and one.beyond_budget
    ]
    cpu = next((one for one in near if one.metric == CPU), None)
    return replace(primary, otherwise=tuple(moved), cpu=cpu)


def _compared(evidence: Evidence) -> Comparison:
    word, reason = rules.apply(evidence)
    numbers = {field.name: getattr(evidence, field.name) for field in fields(Measured)}
    if word != "inconclusive":
        numbers["runs_needed"] = None
    return Comparison(**numbers, verdict=word, reason=reason)
