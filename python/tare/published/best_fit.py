# SPDX-License-Identifier: Apache-2.0
"""The best-fit comparison as published, for every condition and span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tare.verdict.judgement import PublishedBestFit

if TYPE_CHECKING:
    from tare.stats.arrays import Array

LEAST = 2
"""Requests that a run needs for a distance."""


def published_best_fit(
    runs: Mapping[str, Sequence[Mapping[str, Array]]], baseline: str
) -> tuple[tuple[PublishedBestFit, ...], tuple[str, ...]]:
    """Vinken's algorithm 1 on all runs, and warnings about it.

    `runs` has for each condition its runs, and of each its durations in ns by span, (n,). The
    runs of a result are counted from 1 in the order in which they were given.
    """
    from tare.stats.best_fit import PERCENTILES, best_fit

    spans = list(dict.fromkeys(span for run in runs[baseline] for span in run))
    found, warnings = [], []
    for condition in runs:
        if condition == baseline:
            continue
        for span in spans:
            theirs, mine = (_usable(runs[name], span) for name in (baseline, condition))
            result = best_fit([*theirs.values()], [*mine.values()]) if theirs and mine else None
            if result is None:
                warnings.append(
                    f"the published best-fit comparison of '{condition}', {span}, needs a run of"
                    f" both with {LEAST} requests or more, not all equal"
                )
                continue
            found.append(
                PublishedBestFit(
                    condition=condition,
                    span=span,
                    baseline_run=[*theirs][result.first],
                    condition_run=[*mine][result.second],
                    anderson_darling=result.anderson_darling,
                    anderson_darling_p=result.anderson_darling_p,
                    kolmogorov_smirnov=result.kolmogorov_smirnov,
                    kolmogorov_smirnov_p=result.kolmogorov_smirnov_p,
                    among_baseline=result.among_first,
                    percentiles_ns={
                        f"p{name}": pair
                        for name, pair in zip(PERCENTILES, result.percentiles, strict=True)
                    },
                )
            )
    if found:
        warnings.append(
            "the published best-fit comparison uses one run per condition and treats its requests"
            " as independent: its p-values do not apply to other runs"
        )
    return tuple(found), tuple(warnings)


def _usable(runs: Sequence[Mapping[str, Array]], span: str) -> dict[int, Array]:
    return {
        number: run[span]
        for number, run in enumerate(runs, start=1)
        if span in run and run[span].size >= LEAST
    }
