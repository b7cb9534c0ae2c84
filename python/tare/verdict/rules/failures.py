# SPDX-License-Identifier: Apache-2.0
"""Runs of which too much is missing or no measurement: the rest says little about the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from tare.samples.describe.usable_rows import too_many_lost
from tare.samples.model import OTHER_LOAD, REQUEST, Experiment, Run

USUAL = 10
"""Requests of a span: of as many, none is there by chance in one run of 20,000."""

Why = Callable[[Run, float], str | None]


def without_failing(experiment: Experiment, limit: float) -> Experiment:
    """Makes runs with a larger share of failed requests than `limit` invalid, and keeps the limit.

    For files; `tare run` has held its runs against the plan's `max_errors` already.
    """
    return _without(replace(experiment, max_errors=limit), _failing)


def without_bad_runs(experiment: Experiment) -> Experiment:
    """Makes runs invalid that were no measurement; those of spans that some runs lack are added."""
    return with_lost_spans(without_odd(experiment))


def without_odd(experiment: Experiment) -> Experiment:
    """Makes runs invalid that were no measurement by what they recorded.

    More than `max_errors` of their rows are no requests or took no time, or of their spans have
    lost the span around; or their load fell behind its rate.
    """
    return _without(experiment, _odd)


def with_lost_spans(experiment: Experiment) -> Experiment:
    """Adds an invalid run of a span wherever a run lacks it that its condition's other runs have.

    A span that others have but a few of may be absent by chance.
    """
    runs = {(run.run, run.span): run for run in experiment.runs}
    whole = {run.run: run for run in experiment.runs}
    usual: dict[tuple[str, str, str], list[int]] = {}
    for run in experiment.runs:
        usual.setdefault((run.environment, run.condition, run.span), []).append(run.requests)
    lost = []
    for (environment, condition, span), requests in usual.items():
        if median(requests) < USUAL:
            continue
        for number, run in whole.items():
            here = (run.environment, run.condition) == (environment, condition)
            if here and run.valid and (number, span) not in runs:
                reason = f"has no '{span}', but other runs of '{condition}' have many"
                lost.append(_without_span(run, span, reason))
    return replace(
        experiment,
        runs=(*experiment.runs, *lost),
        cuts={name: with_lost_spans(cut) for name, cut in experiment.cuts.items()},
    )


def _without(experiment: Experiment, why: Why) -> Experiment:
    limit = experiment.max_errors
    runs = tuple(_checked(run, why(run, limit)) for run in experiment.runs)
    invalid = {(run.run, run.span): run for run in runs if not run.valid}
    cuts = {
        name: replace(cut, runs=tuple(invalid.get((run.run, run.span), run) for run in cut.runs))
        for name, cut in experiment.cuts.items()
    }
    return replace(experiment, runs=runs, cuts=cuts)


def _checked(run: Run, why: str | None) -> Run:
    if why is None or not run.valid:
        return run
    return replace(run, valid=False, reason=": ".join(filter(None, [run.file, why])))


def _without_span(run: Run, span: str, reason: str) -> Run:
    return Run(
        environment=run.environment,
        condition=run.condition,
        block=run.block,
        run=run.run,
        span=span,
        requests=0,
        errors=0,
        answered=0,
        started_ns=run.started_ns,
        ended_ns=run.ended_ns,
        endpoint=run.endpoint,
        summaries={},
        valid=False,
        reason=": ".join(filter(None, [run.file, reason])),
    )


def _of_span(run: Run, why: str) -> str:
    return why if run.span == REQUEST else f"{run.span}: {why}"


def _failing(run: Run, limit: float) -> str | None:
    share = run.errors / run.requests if run.requests else 0.0
    # The words of `tare run`, whose runs are held against the plan's limit.
    why = f"{share:.2%} of the requests failed, above {limit:.2%}"
    return _of_span(run, why) if share > limit else None


def _odd(run: Run, limit: float) -> str | None:
    if why := too_many_lost(run.lost, limit):
        return why
    share = run.zeros / run.answered if run.answered else 0.0
    if share > limit:
        return _of_span(run, f"{share:.2%} of the requests took no time, above {limit:.2%}")
    behind, orphans = run.load_stats.behind, run.load_stats.orphans
    if behind > OTHER_LOAD:
        why = f"the rate was {behind:.1%} below the intended rate: lower the intended rate"
        return _of_span(run, why)
    if orphans > limit:
        option = "--max-errors" if run.file else "max_errors of the plan"
        return (
            f"{orphans:.2%} of the spans lack their parent span, above {limit:.2%}: record complete"
            f" traces, or allow more with {option}"
        )
    return None
