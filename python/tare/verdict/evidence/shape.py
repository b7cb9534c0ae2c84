# SPDX-License-Identifier: Apache-2.0
"""Whether the distributions of two conditions' runs differ, and at which quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tare.samples.model import Distances, Experiment, Run
from tare.stats.arrays import Array
from tare.stats.distance_permutations import comparable, run_distance_p
from tare.stats.fan_out import meets_slowest, slower_than
from tare.stats.ordered_quantiles import has
from tare.stats.shift import Pair, Shift, shift_functions
from tare.verdict.evidence.estimate import by_block, threshold
from tare.verdict.evidence.evidence import LATENCIES, TAILS, Evidence
from tare.verdict.evidence.systematic import Systematic, rounding, warm_up
from tare.verdict.judgement import LEVEL, Apart, Page, Quantile, Shape

LOWEST, HIGHEST = 0.1, 0.99
PAGES = (10, 36, 100)


def with_shapes(evidence: Sequence[Evidence], experiments: Sequence[Experiment]) -> list[Evidence]:
    """Each evidence with the shape of its runs, in one band over all quantiles of all of them.

    `experiments` has that of each. Without a shape where there are too few runs.
    """
    found = [
        _compared(comparison, experiment)
        for comparison, experiment in zip(evidence, experiments, strict=True)
    ]
    conditions = {key: n for n, key in enumerate(dict.fromkeys(_sides(evidence)))}
    pairs = [
        Pair(
            compared.first,
            compared.second,
            (
                conditions[_side(comparison, comparison.baseline)],
                conditions[_side(comparison, comparison.condition)],
            ),
        )
        for comparison, compared in zip(evidence, found, strict=True)
        if compared is not None
    ]
    paired = all(comparison.paired for comparison in evidence)
    shifts = iter(shift_functions(pairs, paired=paired, level=LEVEL))
    return [
        comparison if compared is None else replace(comparison, shape=compared.shape(next(shifts)))
        for comparison, compared in zip(evidence, found, strict=True)
    ]


def _sides(evidence: Sequence[Evidence]) -> Iterator[tuple[str, str]]:
    for comparison in evidence:
        yield from (_side(comparison, comparison.baseline), _side(comparison, comparison.condition))


def _side(evidence: Evidence, condition: str) -> tuple[str, str]:
    """Which runs: of paired conditions it is the blocks of an environment that are drawn."""
    return evidence.environment, "" if evidence.paired else condition


@dataclass(frozen=True)
class _Compared:
    """Both conditions' runs in one span: what a shape is made of, but for the band."""

    first: Array
    """Logs of quantiles (runs, quantiles) of the baseline's runs."""
    second: Array
    probabilities: Sequence[float]
    thresholds: Sequence[float]
    systematic: Sequence[Systematic]
    ks_p: float | None
    ad_p: float | None
    pages: tuple[Page, ...]
    apart: tuple[Apart, ...]

    def shape(self, shift: Shift | None) -> Shape | None:
        if shift is None:
            return None
        low, high = (
            np.expm1(bound + [getattr(error, side) for error in self.systematic]).tolist()
            for bound, side in ((shift.low, "low"), (shift.high, "high"))
        )
        bands = zip(
            self.probabilities,
            np.expm1(shift.estimate).tolist(),
            low,
            high,
            self.thresholds,
            strict=True,
        )
        quantiles = tuple(Quantile(*band) for band in bands)
        return Shape(self.ks_p, self.ad_p, float(shift.p.min()), quantiles, self.pages, self.apart)


def _compared(evidence: Evidence, experiment: Experiment) -> _Compared | None:
    distances = experiment.distances.get((evidence.environment, evidence.span))
    first, second = (
        _runs(experiment, evidence, name) for name in (evidence.baseline, evidence.condition)
    )
    if evidence.paired:
        both = first.keys() & second.keys()
        first, second = ({b: side[b] for b in sorted(both)} for side in (first, second))
    base, mine = [*first.values()], [*second.values()]
    runs = [*base, *mine]
    if min(len(first), len(second)) < evidence.least or _zero(runs):
        return None
    matrices = _matrices(distances, runs)
    is_second = np.arange(len(runs)) >= len(base)
    block = np.array([b for b, _ in (*first, *second)]) if evidence.paired else None
    sizes = [run.answered for run in runs]
    ks, ad = (
        run_distance_p(comparable(kind, matrices[kind], sizes), is_second, block)
        if kind in matrices
        else None
        for kind in ("ks", "ad")
    )
    fewest = min(run.answered for run in runs)
    stalled = any(run.disturbed for run in runs)
    highest = max(q for q in base[0].quantiles if q < TAILS["p95"]) if stalled else HIGHEST
    known = (q for q in sorted(base[0].quantiles) if LOWEST <= q <= highest)
    probabilities = [q for q in known if has(q, fewest)]
    if len(probabilities) < 2:
        return None
    base_logs, mine_logs = (
        np.log([[run.quantiles[q] for q in probabilities] for run in side]) for side in (base, mine)
    )
    left = warm_up(base, mine)
    return _Compared(
        base_logs,
        mine_logs,
        probabilities,
        [
            threshold(evidence, experiment, _metric(q), baseline_ns)
            for q, baseline_ns in zip(
                probabilities, np.exp(base_logs.mean(axis=0)).tolist(), strict=True
            )
        ],
        [rounding(base, mine, partial(_quantile, q)) + left for q in probabilities],
        ks,
        ad,
        _pages(base, mine),
        tuple(_apart(kind, matrix, is_second) for kind, matrix in matrices.items()),
    )


def _quantile(at: float, run: Run) -> float:
    return run.quantiles[at]


def _matrices(distances: Distances | None, runs: Sequence[Run]) -> dict[str, Array]:
    """Between these runs, by statistic; runs of a request or two lack some."""
    if distances is None or not {run.run for run in runs} <= set(distances.runs):
        return {}
    at = [distances.runs.index(run.run) for run in runs]
    found = {kind: matrix[np.ix_(at, at)] for kind, matrix in distances.of.items()}
    return {kind: matrix for kind, matrix in found.items() if np.isfinite(matrix).all()}


def _metric(q: float) -> str:
    """The metric whose limit holds for a quantile: the next metric towards the tail."""
    return next(name for name in LATENCIES if name.startswith("p") and float(name[1:]) >= 100 * q)


def _apart(statistic: str, distances: Array, is_second: npt.NDArray[np.bool_]) -> Apart:
    alike = is_second[:, None] == is_second
    within = distances[np.triu(alike, 1)]
    return Apart(statistic, float(within.mean()), float(distances[~alike].mean()))


def _zero(runs: Sequence[Run]) -> bool:
    """Whether a quantile that is compared took no time: it has no logarithm."""
    return any(run.quantiles[LOWEST] <= 0 for run in runs)


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
    return tuple(Page(*page) for page in zip(PAGES, *chances, strict=True))


def _runs(experiment: Experiment, evidence: Evidence, condition: str) -> dict[tuple[int, int], Run]:
    """Its valid runs that have a shape, by block and place in it."""
    return by_block(
        [
            run
            for run in experiment.runs
            if (run.environment, run.span, run.condition)
            == (evidence.environment, evidence.span, condition)
            and run.quantiles
        ]
    )
