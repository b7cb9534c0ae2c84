# SPDX-License-Identifier: Apache-2.0
"""The hidden A/A pair: a baseline that differs from itself forbids every verdict around it."""

from __future__ import annotations

from dataclasses import replace

from tare.samples.model import Experiment, Run
from tare.stats.fewest_runs import LEAST_PAIRED
from tare.stats.multiplicity import holm
from tare.verdict.evidence.estimate import estimate
from tare.verdict.evidence.evidence import CPU, LATENCIES
from tare.verdict.judgement import Control

ALPHA = 0.01


def controls(experiment: Experiment) -> tuple[Control, ...]:
    """The outcome in each environment that has enough runs of the control.

    By paired t-tests, Holm over all metrics and spans: with 8 blocks, sign flips of five metrics
    could never reach 0.01. Fewer blocks than a verdict needs raise no alarm: the differences of two
    blocks are often alike by chance, because clocks and CPU times have steps.
    """
    if experiment.control is None:
        return ()
    places: dict[str, dict[str, list[Run]]] = {}
    for run in experiment.runs:
        places.setdefault(run.environment, {}).setdefault(run.span, []).append(run)
    found = []
    for environment, spans in places.items():
        evidence = [
            estimate(experiment, runs, experiment.control, metric)
            for runs in spans.values()
            for metric in (*LATENCIES, CPU)
        ]
        known = [
            (comparison, comparison.p_t) for comparison in evidence if comparison.p_t is not None
        ]
        if known:
            adjusted = holm([p for _, p in known]).tolist()
            p, (least, _) = min(zip(adjusted, known, strict=True), key=lambda pair: pair[0])
            alarm = p < ALPHA and least.runs >= LEAST_PAIRED
            found.append(
                Control(environment, least.runs, least.metric, least.relative or 0.0, p, alarm)
            )
    return tuple(found)


def without_control(experiment: Experiment) -> Experiment:
    """The experiment as its author knows it, and so all its cuts."""
    return replace(
        experiment,
        runs=tuple(run for run in experiment.runs if run.condition != experiment.control),
        control=None,
        cuts={name: without_control(cut) for name, cut in experiment.cuts.items()},
    )
