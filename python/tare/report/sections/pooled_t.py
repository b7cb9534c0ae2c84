# SPDX-License-Identifier: Apache-2.0
"""The section of the pooled t-test of Kahlhofer et al., beside the verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tare.published.numbers import Published, read_published
from tare.report.result.distributions import ConditionKey
from tare.report.result.result import Result
from tare.report.sections.sections import Section, Table
from tare.report.tables import where
from tare.report.typesetting import count, duration, p_value, percent, typeset

if TYPE_CHECKING:
    from tare.stats.two_samples import Moments

COLUMNS = (
    "condition",
    "verdict",
    "effect",
    "t",
    "p",
    "pooled sd",
    "mean difference",
    "median difference",
    "requests",
)


def section(result: Result, pooled: "Mapping[ConditionKey, tuple[Moments, float]]") -> Section:
    """A row for each condition and environment."""
    published = read_published(result.manifest.published)
    return Section(
        anchor="pooled-t",
        name="Pooled t-test",
        gist="the published test of all requests, beside the verdicts",
        how="Kahlhofer et al. compare all requests of two conditions by Student's t-test. The test"
        " takes requests as independent observations. The requests of one run are alike, so p is"
        " much too small. Verdict and effect are from runs, and use no t-test of requests.",
        tables=[
            Table(
                "Pooled t-test",
                (*COLUMNS, *published.columns("pooled-t")),
                list(_rows(result, pooled, published)),
                2,
            )
        ],
        absent="no two conditions have requests that succeeded",
    )


def _rows(
    result: Result, pooled: "Mapping[ConditionKey, tuple[Moments, float]]", published: Published
) -> Iterator[Sequence[str]]:
    from tare.stats.pooled_t import pooled_t_of

    for comparison in sorted(result.primary_comparisons, key=result.rank):
        places = [
            (comparison.environment, name) for name in (result.baseline, comparison.condition)
        ]
        if comparison.span != result.span or not all(place in pooled for place in places):
            continue
        (theirs, their_median), (mine, my_median) = (pooled[place] for place in places)
        found = pooled_t_of(theirs, mine, my_median - their_median)
        if found is not None:
            yield (
                where(result, comparison.environment, comparison.condition),
                comparison.verdict,
                percent(comparison.effect.relative),
                typeset(f"{found.t:.1f}"),
                p_value(found.p),
                duration(found.pooled_spread),
                duration(found.mean_difference, signed=True),
                duration(found.median_difference, signed=True),
                count(found.n + found.m),
                *map(
                    typeset,
                    published.cells("pooled-t", comparison.environment, comparison.condition),
                ),
            )
