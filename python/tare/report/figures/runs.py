# SPDX-License-Identifier: Apache-2.0
"""The primary metric of every run, block by block: what the verdict really compares."""

from collections.abc import Sequence

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import SOFT, Dots, Line, Value
from tare.report.typesetting import duration
from tare.terminal import both_ends

_APART = 0.17
"""Distance between neighbouring conditions of a block, in blocks."""
_VALUES = 120
"""With more runs than these, their values are in the table of runs only."""

Series = tuple[str, str, Sequence[tuple[int, float]]]
"""A condition's name and colour, and block and value in nanoseconds of each of its runs."""


def draw(layout: Layout, series: Sequence[Series]) -> Figure:
    """One dot a run; a line joins the runs of a block, which belong together."""
    apart = min(_APART, 0.7 / len(series))
    blocks: dict[int, list[tuple[float, float]]] = {}
    dots, values = [], []
    for number, (name, colour, runs) in enumerate(series):
        places = [block + apart * (number - (len(series) - 1) / 2) for block, _ in runs]
        for (block, value), place in zip(runs, places, strict=True):
            blocks.setdefault(block, []).append((place, value))
            text = f"{both_ends(name, 24)}, block {block}: {duration(value)}"
            values.append(Value(place, value, text))
        dots.append((colour, places, [value for _, value in runs]))
    low, high = scales.extent((value for _, _, runs in series for _, value in runs), 0.1)
    panel = Panel(
        x=scales.numbers(min(blocks) - 0.6, max(blocks) + 0.6, 8 if layout.narrow else 16),
        y=scales.times(low, high),
        x_title="block",
    )
    for places_of_block in blocks.values():
        x, y = zip(*places_of_block, strict=True)
        panel.add(Line(x, y, SOFT, 1, 0.6))
    radius = 3.4 if len(blocks) <= 24 else 2
    for colour, places, heights in dots:
        panel.add(Dots(places, heights, colour, radius, ringed=True))
    panel.add(*(values if len(values) <= _VALUES else []))
    return Figure([panel], 240 if layout.narrow else 300)
