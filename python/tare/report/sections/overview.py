# SPDX-License-Identifier: Apache-2.0
"""The sections of the first group: what a reader of the verdicts looks at next."""

from collections.abc import Sequence

from tare.report import tables
from tare.report.pictures import Picture
from tare.report.result.result import Result
from tare.report.sections.run_table import Row
from tare.report.sections.sections import Figures, Section
from tare.report.typesetting import plural, safe

P_VALUES = (
    "p is how often chance alone, without any difference, gives a difference at least as large. It"
    " is not the probability that there is no difference. p adjusted is p after a correction for"
    " the number of metrics: of 20 metrics without any difference, one has p below 0.05 by chance."
    " Judge the exploratory metrics by p adjusted."
)


def warnings(result: Result) -> Section:
    """Every warning of the lab and of the judge."""
    number = len(result.warnings)
    return Section(
        anchor="warnings",
        name="Warnings",
        gist=plural(number, "warning"),
        # A warning often takes two lines.
        rows=2 * number,
        absent="",
    )


def failed(rows: Sequence[Row]) -> Section:
    """Runs that do not count, and why."""
    return Section(
        anchor="failed",
        name="Failed runs",
        gist="runs that do not count, and their logs",
        how="These runs are not in any number or figure of this report, except 'Over time'.",
        rows=2 * sum(not row.valid for row in rows),
    )


def effects(result: Result, pictures: Sequence[Picture]) -> Section:
    """The forest plot."""
    return Section(
        anchor="effects",
        name="Differences from the baseline",
        gist="effect and interval of each metric",
        how=f"Each dot is a difference from {safe(result.baseline, 40)}; its line is the interval:"
        " the differences that the runs are compatible with. The grey band is the budget, or what"
        " these runs can detect if that is more. A difference inside of the band is too small to"
        f" matter. Only the strong rows, {safe(result.primary)}, decide the verdict.",
        figures=[Figures(pictures, "Latency and CPU time per request, relative to the baseline.")],
    )


def over_time(pictures: Sequence[Picture]) -> Section:
    """Throughput, latency and errors over the time of day."""
    return Section(
        anchor="over-time",
        name="Over time",
        gist="throughput, latency and failed requests by time of day",
        how="Look for levels that drift, jump or break off: something else happened at that time."
        " Compare it with the logs of the service and of the machine.",
        figures=[
            Figures(
                pictures,
                "All requests of all runs, with the warm-up and with slices that are left out of"
                " the verdict. One line per run; a broken line is a run that does not count.",
            )
        ],
        absent="the requests have no start times",
    )


def runs_by_block(result: Result, pictures: Sequence[Picture]) -> Section:
    """The primary metric of each run."""
    return Section(
        anchor="runs-by-block",
        name="Run by run",
        gist=f"{result.primary} of each run, block by block",
        how="The verdict rests on these dots. The runs of a block met the same machine at about the"
        " same time, so a line joins them. Only the distances within blocks count, not the level"
        " of a block.",
        figures=[Figures(pictures, f"{result.primary} of each valid run.")],
    )


def metrics(result: Result, rows: Sequence[tables.Metric]) -> Section:
    """The table of all comparisons."""
    decides = result.primary
    return Section(
        anchor="metrics",
        name="All metrics",
        gist="every comparison with its values, interval and p",
        how=f"The primary metric, {safe(decides)}, decides the verdict; all others are exploratory."
        f" {P_VALUES}",
        rows=1 + len(rows) + 2 * sum(row.primary for row in rows),
    )
