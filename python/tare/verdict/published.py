# SPDX-License-Identifier: Apache-2.0
"""The pooled t-test as published, and what keeps it from being a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.stats.effective_size import effective_size
from tare.stats.pooled_t import pooled_t
from tare.verdict.judgement import Published
from tare.verdict.words import duration

if TYPE_CHECKING:
    from tare.stats.arrays import Array

ALPHA = 0.05


def published_test(
    baseline: Array, condition: Array, name: str
) -> tuple[Published | None, tuple[str, ...]]:
    """The test of Kahlhofer et al. on all requests (n,) in ns of both, and warnings about it.

    `name` is the condition's. No result when the sizes differ or nothing varies.
    """
    import numpy as np

    if baseline.size != condition.size:
        return None, (
            "the published t-test needs equally many requests in both conditions; found"
            f" {baseline.size:,} and {condition.size:,}",
        )
    result = pooled_t(baseline, condition)
    if result is None:
        return None, ("the published t-test needs two requests or more, not all alike",)
    published = Published(
        t=result.t,
        p=result.p,
        pooled_sd_ns=result.pooled_spread,
        mean_difference_ns=result.mean_difference,
        median_difference_ns=result.median_difference,
        n=result.n,
    )
    warnings = [_direction(published, name)]
    positive = (baseline > 0).all() and (condition > 0).all()
    sizes = [effective_size(np.log(one)) for one in (baseline, condition)] if positive else []
    known = [f"{size:,.0f}" for size in sizes if size is not None]
    if len(known) == 2:
        warnings.append(
            f"the published t-test takes {result.n:,} requests for independent observations; by"
            f" their autocorrelation they are worth {known[0]} and {known[1]}"
        )
    return published, tuple(warnings)


def _direction(published: Published, name: str) -> str:
    mean, median = published.mean_difference_ns, published.median_difference_ns
    word = "slower" if mean > 0 else "faster"
    found = "significant" if published.p <= ALPHA else "not significant"
    line = (
        f"the published t-test is {found}, its sign says '{name}' is {word}: mean"
        f" {duration(mean, signed=True)}, median {duration(median, signed=True)}"
    )
    return line + (" - mean and median disagree about the sign" if mean * median < 0 else "")
