# SPDX-License-Identifier: Apache-2.0
"""The distributions of a condition and of its baseline, one over the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import Band, Dots, Line, Value, stairs
from tare.report.figures.scales import Scale
from tare.report.result.distributions import Density
from tare.report.typesetting import duration
from tare.terminal import both_ends

ROW = 0.13
"""Height of a row of runs, as a share of the panel's."""


@dataclass(frozen=True)
class Side:
    """One condition: its requests, and the primary metric of each of its runs in ns."""

    name: str
    colour: str
    density: Density
    metric: str
    value: float | None
    """Of the comparison, in ns."""
    runs: Sequence[float]


def draw(layout: Layout, sides: Sequence[Side], height: float) -> Figure:
    """Both outlines on a logarithmic axis of latency; below them a dot for each run."""
    edges = sides[0].density.edges
    most = max(float(side.density.shares.max()) for side in sides) or 1.0
    low, high = float(edges[0]), float(edges[-1])
    axis = scales.log_times(low, high, margin=0.0)
    wanted = 3 if layout.width < 400 else 5
    ticks = axis.ticks[:: -(-len(axis.ticks) // wanted)]
    panel = Panel(
        x=Scale(low, high, ticks, logarithmic=True),
        y=Scale(-ROW * (len(sides) + 0.5) * most, 1.05 * most),
        grid="",
    )
    for side in sides:
        x, y = stairs(edges.tolist(), side.density.shares.tolist())
        panel.add(Band(x, [0.0] * len(x), y, side.colour, 0.16))
    for side in sides:
        x, y = stairs(edges.tolist(), side.density.shares.tolist())
        panel.add(Line(x, y, side.colour, 1.6))
    for row, side in enumerate(sides):
        level = -ROW * (row + 0.75) * most
        shown = [value for value in side.runs if low <= value <= high]
        panel.add(Dots(shown, [level] * len(shown), side.colour, 2.6, 0.75))
        if side.value is not None and low <= side.value <= high:
            panel.add(Line([side.value] * 2, [0.0, 1.05 * most], side.colour, 1.4, dashed=True))
            text = f"{both_ends(side.name, 20)}: {side.metric} {duration(side.value)}"
            panel.add(Value(side.value, (0.9 - 0.3 * row) * most, text))
    return Figure([panel], height)
