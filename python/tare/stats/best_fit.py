# SPDX-License-Identifier: Apache-2.0
"""The comparison of Vinken (2022), algorithm 1: the run that fits its siblings best, for two.

It takes every request for an independent observation and one run for all of its condition;
Tare prints it beside its own verdict and never uses it for a verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite
from tare.stats.two_samples import anderson_darling, kolmogorov_smirnov

PERCENTILES = (50, 75, 90, 95, 99, 100)


@dataclass(frozen=True)
class BestFit:
    """The best run of each side, by place, and how the two differ."""

    first: int
    second: int
    anderson_darling: float
    """Standardised, of midranks; below zero where they are closer than chance has them."""
    anderson_darling_p: float
    """From 0.001 to 0.25, which the tables it is interpolated from do not leave."""
    kolmogorov_smirnov: float
    kolmogorov_smirnov_p: float
    percentiles: tuple[tuple[float, float], ...]
    """Of both runs at each of `PERCENTILES`, in the unit of the values."""
    among_first: float | None
    """The greatest Anderson-Darling distance of the baseline's best run to one of its siblings:
    what no change at all gives. None where it has none."""


def best_fit(first: Sequence[npt.ArrayLike], second: Sequence[npt.ArrayLike]) -> BestFit | None:
    """Compares the best run of the baseline (`first`) with that of a condition (`second`).

    Each run has shape (n,), n at least 2. None where both best runs hold one value only, the same.
    """
    baseline, condition = ([finite(run, at_least=2) for run in side] for side in (first, second))
    baseline_best, condition_best = best_run(baseline), best_run(condition)
    a, b = baseline[baseline_best], condition[condition_best]
    siblings = [_distance(a, run) for place, run in enumerate(baseline) if place != baseline_best]
    distance, kolmogorov = anderson_darling(a, b), kolmogorov_smirnov(a, b)
    if distance is None or kolmogorov is None:
        return None
    return BestFit(
        baseline_best,
        condition_best,
        distance.statistic,
        distance.p,
        kolmogorov.statistic,
        kolmogorov.p,
        tuple((float(np.percentile(a, q)), float(np.percentile(b, q))) for q in PERCENTILES),
        max(siblings, default=None),
    )


def best_run(runs: Sequence[Array]) -> int:
    """The place of the run with the least sum of Anderson-Darling distances to all others.

    The first of equals. Raises ValueError where there are no runs.
    """
    if not runs:
        raise ValueError("expected at least one run")
    sums = np.zeros(len(runs))
    for i in range(len(runs)):
        for j in range(i):
            sums[[i, j]] += _distance(runs[i], runs[j])
    return int(sums.argmin())


def _distance(first: Array, second: Array) -> float:
    found = anderson_darling(first, second)
    return found.statistic if found else 0.0
