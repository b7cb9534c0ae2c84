# SPDX-License-Identifier: Apache-2.0
"""Published analyses in words, for a terminal and for a comment alike."""

from __future__ import annotations

from tare.samples.model import REQUEST
from tare.verdict.judgement import Judgement, Published, PublishedBestFit
from tare.verdict.number_text import duration


def paragraphs(judgement: Judgement) -> list[str]:
    """A paragraph for each published result; none where none was asked for, or there is none."""
    published = judgement.published
    if isinstance(published, tuple):
        return [_best_fit(best) for best in published]
    return [] if published is None else [_pooled(published)]


def _pooled(test: Published) -> str:
    counts = f"{test.n:,} a condition"
    if test.n_condition != test.n:
        counts = f"{test.n:,} of the baseline, {test.n_condition:,} of the condition"
    return (
        "published t-test (all requests pooled; not part of the verdict):"
        f" t = {test.t:.2f}, p {_small(test.p)}, pooled sd {duration(test.pooled_sd_ns)}, mean"
        f" {duration(test.mean_difference_ns, signed=True)}, median"
        f" {duration(test.median_difference_ns, signed=True)}, n = {counts}"
    )


def _best_fit(best: PublishedBestFit) -> str:
    span = "" if best.span == REQUEST else f", {best.span}"
    quantiles = ", ".join(
        f"{name.upper()} {duration(baseline)} to {duration(condition)}"
        for name, (baseline, condition) in best.percentiles_ns.items()
    )
    among = (
        ""
        if best.among_baseline is None
        else f"; that run of the baseline and its siblings: up to AD = {best.among_baseline:.2f}"
    )
    return (
        f"published best-fit runs of '{best.condition}'{span} (its run {best.condition_run} against"
        f" run {best.baseline_run} of the baseline; not part of the verdict):"
        f" AD = {best.anderson_darling:.2f}, p {_of_tables(best.anderson_darling_p)};"
        f" KS = {best.kolmogorov_smirnov:.4f}, p {_small(best.kolmogorov_smirnov_p)};"
        f" {quantiles}{among}"
    )


def _small(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"= {p:.4f}"


def _of_tables(p: float) -> str:
    """A p-value that was interpolated in tables from 0.001 to 0.25."""
    if p <= 0.001:
        return "<= 0.001"
    return ">= 0.25" if p >= 0.25 else f"= {p:.4f}"
