# SPDX-License-Identifier: Apache-2.0
"""The levels on which each run stood, one after the other (Barrett et al. 2017, figure 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel, columns_for
from tare.report.figures.marks import BAND, Box, Line, stairs
from tare.terminal import both_ends

if TYPE_CHECKING:
    from tare.stats.steady import Steadiness


@dataclass(frozen=True)
class Course:
    """One condition and its runs, each of which has segments."""

    title: str
    colour: str
    runs: "Sequence[Steadiness]"


def draw(layout: Layout, courses: Sequence[Course], cut: int) -> Figure:
    """One panel a condition, one line a run; shaded are the first `cut` requests, left out."""
    columns = columns_for(len(courses), layout)
    segments = [segment for course in courses for run in course.runs for segment in run.segments]
    levels = [segment.level for segment in segments]
    longest = max(segment.end for segment in segments)
    drawn = []
    for place, course in enumerate(courses):
        panel = Panel(
            x=scales.numbers(0, longest, 3),
            y=scales.log_times(min(levels), max(levels)),
            title=both_ends(course.title, layout.letters(columns)),
            x_title="request" if place >= len(courses) - columns else "",
            y_labels=place % columns == 0,
        )
        if cut:
            panel.add(Box(0, cut, None, None, BAND))
        for run in course.runs:
            x, y = stairs(
                [run.segments[0].start, *(segment.end for segment in run.segments)],
                [segment.level for segment in run.segments],
            )
            panel.add(Line(x, y, course.colour, 1.4, 0.75, dashed=run.cut is None))
        drawn.append(panel)
    return Figure(drawn, 170 if layout.narrow else 230, columns)
