# SPDX-License-Identifier: Apache-2.0
"""Round trips against root spans: what network and stack add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from tare.samples.model import REQUEST, ROOT_QUANTILES
from tare.stats.interval import paired_difference
from tare.verdict.judgement import LEVEL
from tare.verdict.traces import OutsideRoot

if TYPE_CHECKING:
    from tare.samples.model import Experiment, Run, Traced

COVERED = 0.9
"""The least share of the traced requests of a run that have its root span."""

Pair = tuple["Run", "Traced"]
"""The round trips of a run, and its root spans."""


def outside_root(experiment: Experiment) -> Iterator[OutsideRoot]:
    """Of each environment, condition and root span, at each quantile of a run.

    None of runs without traces or round trips, or with several root spans.
    """
    traced: dict[int, dict[str, Traced]] = {}
    for (number, name), spans in experiment.traces.items():
        traced.setdefault(number, {})[name] = spans
    found: dict[tuple[str, str, str], list[Pair]] = {}
    for run in experiment.runs:
        if run.valid and run.span == REQUEST and (root := _root(traced.get(run.run, {}))):
            place = run.environment, run.condition, root
            found.setdefault(place, []).append((run, traced[run.run][root]))
    for place, pairs in found.items():
        for metric in ROOT_QUANTILES:
            known = [(run, spans) for run, spans in pairs if metric in run.summaries]
            if known:
                yield _over_runs(place, metric, known)


def _root(roots: Mapping[str, Traced]) -> str | None:
    """The root span of nearly all requests."""
    every = sum(spans.requests for spans in roots.values())
    return next((name for name, spans in roots.items() if spans.requests >= COVERED * every), None)


def _over_runs(place: tuple[str, str, str], metric: str, pairs: Sequence[Pair]) -> OutsideRoot:
    environment, condition, root = place
    trips = [run.summaries[metric] for run, _ in pairs]
    roots = [spans.quantiles[metric] for _, spans in pairs]
    added = [trip - root for trip, root in zip(trips, roots, strict=True)]
    difference = paired_difference(added)
    low, high = (None, None) if difference is None else difference.interval(LEVEL)
    return OutsideRoot(
        environment=environment,
        condition=condition,
        root=root,
        metric=metric,
        runs=len(pairs),
        round_trip_ns=fmean(trips),
        root_ns=fmean(roots),
        difference_ns=fmean(added),
        low=low,
        high=high,
    )
