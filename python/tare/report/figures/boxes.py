# SPDX-License-Identifier: Apache-2.0
"""Tukey's boxes side by side (Kahlhofer et al., figure 4): fliers hidden, no caps removed."""

from collections.abc import Sequence

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import INK, Box, Line, Value
from tare.report.result.distributions import Box as Quartiles
from tare.report.typesetting import duration
from tare.terminal import both_ends

_HALF = 0.27
_CAP = 0.13


def draw(layout: Layout, rows: Sequence[tuple[str, str, Quartiles]]) -> Figure:
    """One horizontal box for each name, colour and box, the first on top."""
    low, high = scales.extent((end for _, _, box in rows for end in (box.low, box.high)), 0.04)
    limit = 14 if layout.narrow else 32
    panel = Panel(
        x=scales.times(low, high, 4 if layout.narrow else 6),
        y=scales.names([both_ends(name, limit) for name, _, _ in rows]),
        grid="x",
    )
    for row, (_, colour, box) in enumerate(rows):
        for end, start in ((box.low, box.first), (box.third, box.high)):
            panel.add(Line([end, start], [row, row], colour, 1.2))
        for cap in (box.low, box.high):
            panel.add(Line([cap, cap], [row - _CAP, row + _CAP], colour, 1.2))
        panel.add(Box(box.first, box.third, row - _HALF, row + _HALF, colour, 0.85))
        panel.add(Line([box.median, box.median], [row - _HALF, row + _HALF], INK, 1.8))
    for row, (name, _, box) in enumerate(rows):
        numbers = (
            f"{both_ends(name, 20)}: median {duration(box.median)},"
            f" box {duration(box.first)} to {duration(box.third)}"
        )
        panel.add(Value(box.median, row, numbers))
    return Figure([panel], (46 if layout.narrow else 44) * len(rows) + 40)
