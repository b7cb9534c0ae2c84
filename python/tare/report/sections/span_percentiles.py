# SPDX-License-Identifier: Apache-2.0
"""The section of the percentiles of spans, with the runs that Vinken's algorithm 1 compares."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tare.published.numbers import Published, read_published
from tare.report import pictures
from tare.report.result import distributions
from tare.report.result.result import Result
from tare.report.sections.distances import size
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import where
from tare.report.typesetting import count, duration, plural, typeset
from tare.stats.best_fit import PERCENTILES

if TYPE_CHECKING:
    import tare.samples.read.result as samples
    from tare.samples.model import Distances
    from tare.samples.sql.table import Table as Samples

SPANS = 9
"""Spans that are shown, as many as the thesis reports."""
COLUMNS = (
    "condition",
    "verdict of all runs",
    "run",
    *(f"p{percentile}" for percentile in PERCENTILES),
    "AD",
    "KS",
)


def section(result: Result, opened: "samples.Result") -> Section:
    """A figure and rows for each span."""
    from tare.samples.sql.group_numbers import settled

    others = [span for span in result.spans if span != result.span]
    spans = [result.span, *others] if others else []
    published = read_published(result.manifest.published)
    drawn, rows = list[pictures.Picture](), list[Sequence[str]]()
    for span in spans[:SPANS]:
        kept = distributions.kept(opened, result.places, span)
        if kept is None:
            continue
        counted = settled(kept, result.looks.first)
        if span != result.span:
            drawn += pictures.percentile_plots(result, distributions.curves(counted), span)
        rows += _rows(result, counted, span, published)
    more = f" {plural(len(spans) - SPANS, 'more span')} not shown." if len(spans) > SPANS else ""
    return Section(
        anchor="span-percentiles",
        name="Percentiles of spans",
        gist="each span from its fastest call to its slowest",
        how="The table has one run of each condition: its Anderson-Darling distances to the other"
        " runs of the condition have the least sum. AD and KS compare it with the run of"
        " the baseline, as algorithm 1 of Vinken's thesis does. A single run cannot show how much"
        " runs differ: the verdict uses all runs.",
        figures=[
            Figures(
                drawn,
                "Thin: one run. Bold: the median over the runs of a condition. Each further nine"
                f" takes the same width. Both axes are logarithmic.{more}",
            )
        ],
        tables=[
            Table(
                "Runs that fit best",
                (*COLUMNS, *published.columns("best-fit")),
                rows,
                2,
            )
        ],
        absent="the requests have no spans",
    )


def _rows(
    result: Result, samples: "Samples", span: str, published: Published
) -> Iterator[Sequence[str]]:
    """The baseline and each condition of every environment."""
    verdicts = {
        (comparison.environment, comparison.condition): comparison.verdict
        for comparison in result.primary_comparisons
        if comparison.span == span
    }
    found = {
        environment: (known, _best_runs(result, environment, span, known))
        for environment in result.environments
        if (known := result.experiment.distances.get((environment, span)))
    }
    chosen = [run for _, best in found.values() for run in best.values()]
    percentiles = _percentiles(samples, chosen)
    for environment, (known, best) in found.items():
        theirs = best.get(result.baseline)
        for condition, run in best.items():
            apart = ["–", "–"]
            if theirs is not None and condition != result.baseline:
                at = known.runs.index(theirs), known.runs.index(run)
                apart = [typeset(size(float(known.of[kind][at]))) for kind in ("ad", "ks")]
            yield (
                where(result, environment, condition, span),
                verdicts.get((environment, condition), "–"),
                count(run),
                *map(duration, percentiles.get(run, [None] * len(PERCENTILES))),
                *apart,
                *map(typeset, published.cells("best-fit", environment, condition, span)),
            )


def _best_runs(
    result: Result, environment: str, span: str, known: "Distances"
) -> Mapping[str, int]:
    """Of each condition, the run with the least sum of distances to its siblings."""
    import numpy as np

    runs: dict[str, list[int]] = {name: [] for name in result.conditions}
    for run in result.experiment.runs:
        is_of_span = (run.environment, run.span) == (environment, span)
        if is_of_span and run.valid and run.run in known.runs and run.condition in runs:
            runs[run.condition].append(run.run)
    best = {}
    for name, mine in runs.items():
        at = [known.runs.index(run) for run in mine]
        apart = known.of["ad"][np.ix_(at, at)]
        # Runs with too few requests have no Anderson-Darling distance to any other.
        siblings = np.isfinite(apart).sum(axis=1)
        if len(mine) == 1 or siblings.max(initial=0) > 1:
            sums = np.where(siblings == siblings.max(), np.nansum(apart, axis=1), np.inf)
            best[name] = mine[int(sums.argmin())]
    return best


def _percentiles(samples: "Samples", runs: Sequence[int]) -> dict[int, list[float]]:
    """The percentiles of each run in ns, as `PERCENTILES` names them."""
    chosen = samples.filter(samples.run.isin(runs))
    shares = [percentile / 100 for percentile in PERCENTILES]
    table = chosen.group_by("run").agg(latency=chosen.latency_ns.quantile(shares)).to_pyarrow()
    return {row["run"]: row["latency"] for row in table.to_pylist()}
