# SPDX-License-Identifier: Apache-2.0
"""The pooled t-test as published, and what keeps it from being a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.stats.effective_size import effective_size
from tare.stats.pooled_t import pooled_t
from tare.verdict.judgement import Published
from tare.verdict.number_text import duration

if TYPE_CHECKING:
    from tare.stats.arrays import Array

ALPHA = 0.05


def published_test(
    baseline: Array, condition: Array, name: str
) -> tuple[Published | None, tuple[str, ...]]:
    """The test of Kahlhofer et al. on all requests (n,) in ns of both, and warnings about it.

    `name` is the condition's. No result when nothing varies.
    """
    import numpy as np

    result = pooled_t(baseline, condition)
    if result is None:
        return None, (
            "the published t-test needs two requests or more of both conditions, not all alike;"
            f" found {baseline.size:,} and {condition.size:,}",
        )
    published = Published(
        t=result.t,
        p=result.p,
        pooled_sd_ns=result.pooled_spread,
        mean_difference_ns=result.mean_difference,
        median_difference_ns=result.median_difference,
        n=result.n,
        n_condition=result.m,
    )
    warnings = [_direction(published, name)]
    if result.n != result.m:
        warnings.append(
            f"the published t-test is defined for equally many requests; of {result.n:,} and"
            f" {result.m:,} it is Student's, which weights their variances by their numbers"
        )
    positive = (baseline > 0).all() and (condition > 0).all()
    sizes = [effective_size(np.log(side)) for side in (baseline, condition)] if positive else []
    known = [f"{size:,.0f}" for size in sizes if size is not None]
    counts = " and ".join(f"{number:,}" for number in dict.fromkeys((result.n, result.m)))
    if len(known) == 2:
        warnings.append(
            f"the published t-test takes {counts} requests for independent observations; by their"
            f" autocorrelation they equal {known[0]} and {known[1]}"
        )
    return published, tuple(warnings)


def _direction(published: Published, name: str) -> str:
    mean, median = published.mean_difference_ns, published.median_difference_ns
    word = "slower" if mean > 0 else "faster"
    found = "significant" if published.p <= ALPHA else "not significant"
    line = (
        f"the published t-test is {found}; by its mean, '{name}' is {word}: mean"
        f" {duration(mean, signed=True)}, median {duration(median, signed=True)}"
    )
    return line + ("; mean and median have opposite signs" if mean * median < 0 else "")
