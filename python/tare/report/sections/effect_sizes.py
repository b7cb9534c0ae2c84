# SPDX-License-Identifier: Apache-2.0
"""The same differences otherwise: by the order of the runs alone, and as a page of requests."""

from collections.abc import Iterator, Sequence

from tare.report.result.result import Result
from tare.report.sections.sections import Table
from tare.report.tables import whose
from tare.report.typesetting import count, interval, metric, percent, safe, typeset

ORDER_COLUMNS = (
    "condition",
    "metric",
    "Cliff's delta",
    "Vargha–Delaney A",
    "Hodges–Lehmann",
    "its interval",
    "level",
)
PAGE_COLUMNS = ("condition", "requests per page", "baseline", "with the condition")


def tables(result: Result) -> list[Table]:
    """Without rows where so few runs have none, or verdicts are of an older version."""
    return [
        Table("Effect sizes from the order of runs", ORDER_COLUMNS, list(_order(result)), 2),
        Table(
            "Chance that a page meets a request slower than the baseline's p99",
            PAGE_COLUMNS,
            list(_pages(result)),
        ),
    ]


def _order(result: Result) -> Iterator[Sequence[str]]:
    for comparison in result.ranked:
        if (sizes := comparison.effect_sizes) is not None:
            yield (
                whose(result, comparison),
                safe(metric(comparison.metric), 24),
                typeset(f"{sizes.cliffs_delta:+.3f}"),
                f"{sizes.vargha_delaney:.3f}",
                percent(sizes.hodges_lehmann),
                interval(sizes.low, sizes.high),
                percent(sizes.level, signed=False),
            )


def _pages(result: Result) -> Iterator[Sequence[str]]:
    for comparison in sorted(result.primary_comparisons, key=result.rank):
        for page in () if comparison.shape is None else comparison.shape.pages:
            yield (
                whose(result, comparison),
                count(page.requests),
                percent(page.baseline, signed=False),
                percent(page.condition, signed=False),
            )
