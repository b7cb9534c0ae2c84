# SPDX-License-Identifier: Apache-2.0
"""Runs of which too much is missing or no measurement: the rest says little about the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tare.samples.model import REQUEST, Experiment, Run

Why = Callable[[Run, float], str | None]


def without_failing(experiment: Experiment, limit: float) -> Experiment:
    """Makes runs with a larger share of failed requests than `limit` invalid, and keeps the limit.

    For files; `tare run` has held its runs against the plan's `max_errors` already.
    """
    return _without(replace(experiment, max_errors=limit), _failing)


def without_odd(experiment: Experiment) -> Experiment:
    """Makes runs invalid of which more than `max_errors` are no requests, or took no time."""
    return _without(experiment, _odd)


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
    # A file is where its run is to be found; runs of a result have numbers for that.
    file = "" if "://" in (run.endpoint or "") else run.endpoint
    where = [file, "" if run.span == REQUEST else run.span]
    return replace(run, valid=False, reason=": ".join([*filter(None, where), why]))


def _failing(run: Run, limit: float) -> str | None:
    share = run.errors / run.requests if run.requests else 0.0
    # The words of `tare run`, whose runs are held against the plan's limit.
    return f"{share:.2%} of the requests failed, above {limit:.2%}" if share > limit else None


def _odd(run: Run, limit: float) -> str | None:
    if run.lost > limit:
        return f"{run.lost:.2%} of the rows have no usable time, above {limit:.2%}"
    share = run.zeros / run.answered if run.answered else 0.0
    if share > limit:
        return f"{share:.2%} of the requests took no time, above {limit:.2%}"
    return None
