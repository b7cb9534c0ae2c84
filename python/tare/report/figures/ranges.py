# SPDX-License-Identifier: Apache-2.0
"""How far each run lies from its siblings (Vinken 2022: minimum, mean and maximum statistic)."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import Dots, Line
from tare.report.figures.scales import Scale, Tick
from tare.terminal import both_ends

_BETWEEN = 1.5
"""Room between two conditions, in runs."""
_LETTER = 8
"""Width of a letter in CSS pixels."""


@dataclass(frozen=True)
class Group:
    """One condition: least, mean and most of each of its runs."""

    name: str
    colour: str
    runs: Sequence[tuple[float, float, float]]


def draw(layout: Layout, panels: Sequence[tuple[str, Sequence[Group]]]) -> Figure:
    """One panel for each title; a line a run from least to most, a dot at the mean."""
    columns = 1 if layout.narrow else len(panels)
    drawn = []
    for title, groups in panels:
        letters = max(int(0.85 * layout.width / columns / len(groups) / _LETTER), 3)
        start, ticks = 0.0, []
        marks: list[Line | Dots] = []
        for group in groups:
            places = [start + number for number in range(len(group.runs))]
            for place, (least, _, most) in zip(places, group.runs, strict=True):
                marks.append(Line([place, place], [least, most], group.colour, 2, 0.5))
            radius = 2.6 if len(group.runs) <= 24 else 1.6
            marks.append(Dots(places, [mean for _, mean, _ in group.runs], group.colour, radius))
            label = both_ends(group.name, letters)
            ticks.append(Tick((places[0] + places[-1]) / 2, label, True))
            start = places[-1] + 1 + _BETWEEN
        ends = scales.extent((end for group in groups for run in group.runs for end in run), 0.1)
        panel = Panel(
            x=Scale(-0.8, start - _BETWEEN - 0.2, ticks),
            y=scales.linear(*ends, "{:g}".format, 4),
            title=title,
        )
        panel.add(*marks)
        drawn.append(panel)
    return Figure(drawn, 210 if layout.narrow else 290, columns)
