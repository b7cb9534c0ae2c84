# SPDX-License-Identifier: Apache-2.0
"""The shift function: the difference at each quantile, in one band that holds for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel, columns_for
from tare.report.figures.marks import BAND, Band, Line, Rule, Value, stairs
from tare.report.figures.scales import Scale, Tick
from tare.report.typesetting import interval, percent
from tare.terminal import both_ends

if TYPE_CHECKING:
    from tare.verdict.judgement import Quantile


@dataclass(frozen=True)
class Shift:
    """One condition."""

    title: str
    colour: str
    shift: "Sequence[Quantile]"


def draw(layout: Layout, shifts: Sequence[Shift]) -> Figure:
    """One panel a condition, all on one scale; quantiles are at equal distances."""
    columns = columns_for(len(shifts), layout)
    ends = [
        end
        for condition in shifts
        for at in condition.shift
        for end in (at.low, at.high, at.relative, at.threshold, -at.threshold)
    ]
    low, high = scales.extent(ends, 0.05)
    drawn = []
    for place, condition in enumerate(shifts):
        places = list(range(len(condition.shift)))
        edges = [at - 0.5 for at in range(len(condition.shift) + 1)]
        x, grey = stairs(edges, [at.threshold for at in condition.shift])
        panel = Panel(
            x=Scale(
                edges[0],
                edges[-1],
                [Tick(at, f"p{condition.shift[at].q * 100:g}") for at in places[::2]],
            ),
            y=scales.shares(low, high, signed=True),
            title=both_ends(condition.title, layout.letters(columns)),
            y_labels=place % columns == 0,
            marks=[Band(x, [-at for at in grey], grey, BAND), Rule(y=0)],
        )
        lows, highs = [at.low for at in condition.shift], [at.high for at in condition.shift]
        panel.add(Band(places, lows, highs, condition.colour, 0.25))
        panel.add(Line(places, [at.relative for at in condition.shift], condition.colour, dots=3))
        for number, at in enumerate(condition.shift):
            text = f"p{at.q * 100:g}: {percent(at.relative)}, {interval(at.low, at.high)}"
            panel.add(Value(number, at.relative, text))
        drawn.append(panel)
    return Figure(drawn, 200 if layout.narrow else 260, columns)
