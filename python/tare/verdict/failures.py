# SPDX-License-Identifier: Apache-2.0
"""Runs of which too many requests failed: those that did not fail say little about the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tare.samples.model import REQUEST, Experiment, Run


def without_failing(experiment: Experiment, limit: float) -> Experiment:
    """Makes runs with a larger share of failed requests than `limit` invalid, and says which.

    For files; `tare run` has held its runs against the plan's `max_errors` already.
    """
    runs = tuple(_checked(run, limit) for run in experiment.runs)
    failing = {(run.run, run.span): run for run in runs if not run.valid}
    told = tuple(
        f"{after.reason}: the run does not count"
        for before, after in zip(experiment.runs, runs, strict=True)
        if before.valid and not after.valid
    )
    cuts = {name: _without(cut, failing) for name, cut in experiment.cuts.items()}
    return replace(experiment, runs=runs, cuts=cuts, warnings=(*experiment.warnings, *told))


def _without(cut: Experiment, failing: Mapping[tuple[int, str], Run]) -> Experiment:
    return replace(cut, runs=tuple(failing.get((run.run, run.span), run) for run in cut.runs))


def _checked(run: Run, limit: float) -> Run:
    share = run.errors / run.requests if run.requests else 0.0
    if not run.valid or share <= limit:
        return run
    span = "" if run.span == REQUEST else f"{run.span}: "
    # The words of `tare run`, whose runs are held against the plan's limit.
    reason = f"{run.endpoint}: {span}{share:.2%} of the requests failed, above {limit:.2%}"
    return replace(run, valid=False, reason=reason)
