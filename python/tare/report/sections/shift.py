# SPDX-License-Identifier: Apache-2.0
"""The section of the shift function: how far each quantile moved, not the primary metric alone."""

from collections.abc import Iterator, Sequence
from functools import partial

from tare.report.figures import shift
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.pictures import Picture, colours
from tare.report.result.result import Result
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import whose
from tare.report.typesetting import interval, percent, plural, safe

PANELS = 9
"""Conditions of one figure."""
FIGURES = 8
COLUMNS = ("condition", "quantile", "difference", "band", "threshold")


def section(result: Result) -> Section:
    """One figure for each environment and span, one panel for each condition."""
    return Section(
        anchor="shift",
        name="Every quantile",
        gist="whether fast or slow requests changed most",
        how="If a condition slows all requests alike, the whole line is higher. If it slows some"
        " requests only, the line bends. A quantile differs by more than the threshold if its"
        " coloured band is outside of the grey band.",
        figures=[
            Figures(
                list(_pictures(result)),
                "Difference of each quantile from the baseline. The coloured band holds for all"
                " quantiles at once with 95 % confidence; the grey band is the threshold.",
            )
        ],
        tables=[Table("Difference by quantile", COLUMNS, list(_rows(result)), 2)],
        absent="too few runs to compare quantiles, or verdicts of an older version",
    )


def _rows(result: Result) -> Iterator[Sequence[str]]:
    for comparison in sorted(result.primary_comparisons, key=result.rank):
        for at in () if comparison.shape is None else comparison.shape.shift:
            yield (
                whose(result, comparison),
                f"p{at.q * 100:g}",
                percent(at.relative),
                interval(at.low, at.high),
                percent(at.threshold, signed=False),
            )


def _pictures(result: Result) -> Iterator[Picture]:
    colour = colours(result)
    places: dict[tuple[str, str], list[shift.Shift]] = {}
    for comparison in sorted(result.primary_comparisons, key=result.rank):
        if comparison.shape is not None:
            panel_colour = colour.get(comparison.condition, SERIES[1])
            panel = shift.Shift(comparison.condition, panel_colour, comparison.shape.shift)
            places.setdefault((comparison.environment, comparison.span), []).append(panel)
    whole_first = sorted(places.items(), key=lambda item: item[0][1] != result.span)
    for number, (place, panels) in enumerate(whole_first, start=1):
        if number > FIGURES:
            return
        shown = panels[:PANELS]
        said = "; ".join(
            f"{safe(panel.title)} "
            + ", ".join(
                f"p{at.q * 100:g} {percent(at.relative)} ({percent(at.low)} to {percent(at.high)})"
                for at in panel.shift
            )
            for panel in shown
        )
        left = [
            plural(count, what)
            for count, what in (
                (len(panels) - len(shown), "more condition"),
                (len(places) - FIGURES if number == FIGURES else 0, "more figure"),
            )
            if count > 0
        ]
        yield Picture(
            result.named(*place),
            inline(partial(shift.draw, shifts=shown), f"Difference by quantile: {said}."),
            note=f"Not drawn, but in the table: {', '.join(left)}." if left else "",
        )
