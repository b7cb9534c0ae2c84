# SPDX-License-Identifier: Apache-2.0
"""Whether the distributions of two conditions' runs differ, and at which quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tare.samples.model import Experiment, Run
from tare.stats.arrays import Array
from tare.stats.fan_out import meets_slowest, slower_than
from tare.stats.multiplicity import holm
from tare.stats.run_distance import comparable, run_distance_p
from tare.stats.shift import shift_function
from tare.verdict.evidence import LATENCIES, Evidence, threshold
from tare.verdict.judgement import LEVEL, Apart, Page, Quantile, Shape

HIGHEST = 0.99
PAGES = (10, 36, 100)


def with_shape(evidence: Evidence, experiment: Experiment) -> Evidence:
    """The evidence with the shape of its runs; without, where there are too few or no distances."""
    place = evidence.environment, evidence.span
    distances = experiment.distances.get(place)
    first, second = (
        _runs(experiment, evidence, name) for name in (evidence.baseline, evidence.condition)
    )
    if evidence.paired:
        both = first.keys() & second.keys()
        first, second = ({b: side[b] for b in sorted(both)} for side in (first, second))
    if distances is None or min(len(first), len(second)) < evidence.least:
        return evidence
    runs = [*first.values(), *second.values()]
    if not {run.run for run in runs} <= set(distances.runs) or _zero(runs):
        return evidence
    at = [distances.runs.index(run.run) for run in runs]
    is_second = np.arange(len(runs)) >= len(first)
    block = np.array([b for b, _ in (*first, *second)]) if evidence.paired else None
    sizes = [run.answered for run in runs]
    mine = {kind: matrix[np.ix_(at, at)] for kind, matrix in distances.of.items()}
    # Of runs of a request or two not all statistics are there.
    known = {kind: matrix for kind, matrix in mine.items() if np.isfinite(matrix).all()}
    if not {"ks", "ad"} <= known.keys():
        return evidence
    ks, ad = (
        run_distance_p(comparable(kind, mine[kind], sizes), is_second, block)
        for kind in ("ks", "ad")
    )
    probabilities = [q for q in sorted(runs[0].quantiles) if q <= HIGHEST]
    one, two = (
        np.log([[run.quantiles[q] for q in probabilities] for run in side.values()])
        for side in (first, second)
    )
    shift = shift_function(one, two, paired=evidence.paired, level=LEVEL)
    if ks is None or ad is None or shift is None:
        return evidence
    least = [
        threshold(evidence, experiment, _metric(q), baseline_ns)
        for q, baseline_ns in zip(probabilities, np.exp(one.mean(axis=0)).tolist(), strict=True)
    ]
    bands = (np.expm1(x).tolist() for x in (shift.estimate, shift.low, shift.high))
    moved = tuple(Quantile(*one) for one in zip(probabilities, *bands, least, strict=True))
    pages = _pages([*first.values()], [*second.values()])
    apart = tuple(_apart(kind, matrix, is_second) for kind, matrix in known.items())
    return replace(evidence, shape=Shape(ks, ad, ad, moved, pages, apart))


def _metric(q: float) -> str:
    """The metric whose limit holds for a quantile: the next one towards the tail."""
    return next(name for name in LATENCIES if name.startswith("p") and float(name[1:]) >= 100 * q)


def _apart(statistic: str, distances: Array, is_second: npt.NDArray[np.bool_]) -> Apart:
    alike = is_second[:, None] == is_second
    within = distances[np.triu(alike, 1)]
    return Apart(statistic, float(within.mean()), float(distances[~alike].mean()))


def _zero(runs: Sequence[Run]) -> bool:
    """Whether some request took no time: it has no logarithm."""
    return any(min(run.quantiles.values()) <= 0 for run in runs)


def _pages(first: Sequence[Run], second: Sequence[Run]) -> tuple[Page, ...]:
    """For pages of some requests; none where the baseline's p99 is off the scale of the others."""
    threshold = float(np.exp(np.mean([np.log(run.quantiles[HIGHEST]) for run in first])))
    shares = []
    for runs in (first, second):
        at = sorted(runs[0].quantiles)
        found = [slower_than(threshold, [run.quantiles[q] for q in at], at) for run in runs]
        known = [share for share in found if share is not None]
        if len(known) < len(runs):
            return ()
        shares.append(float(np.mean(known)))
    chances = (meets_slowest(PAGES, share).tolist() for share in shares)
    return tuple(Page(*one) for one in zip(PAGES, *chances, strict=True))


def adjusted_shapes(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The evidence with p-values of shapes by Holm over all of it.

    Those of Anderson and Darling, which see tails; Kolmogorov and Smirnov's are shown beside them.
    """
    p = iter(holm([one.shape.ad_p for one in evidence if one.shape]).tolist())
    return [
        replace(one, shape=replace(one.shape, p_adjusted=next(p))) if one.shape else one
        for one in evidence
    ]


def _runs(experiment: Experiment, evidence: Evidence, condition: str) -> dict[tuple[int, int], Run]:
    """Its valid runs that have a shape, by block and place in it."""
    found: dict[tuple[int, int], Run] = {}
    for run in experiment.runs:
        here = run.environment, run.span, run.condition
        if here == (evidence.environment, evidence.span, condition) and run.valid and run.quantiles:
            found[run.block, sum(block == run.block for block, _ in found)] = run
    return found
