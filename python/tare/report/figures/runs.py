# SPDX-License-Identifier: Apache-2.0
"""The primary metric of every run, block by block: what the verdict really compares."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import PAPER, SOFT, Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_APART = 0.17
"""Distance between neighbouring conditions of a block, in blocks."""

Series = tuple[str, Sequence[tuple[int, float]]]
"""A condition's colour, and block and value in nanoseconds of each of its runs."""


def draw(layout: Layout, series: Sequence[Series]) -> "Figure":
    """One dot a run; a line joins the runs of a block, which belong together."""
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = layout.figure(240 if layout.narrow else 300)
    apart = min(_APART, 0.7 / len(series))
    placed: dict[int, list[tuple[float, float, str]]] = {}
    for number, (colour, runs) in enumerate(series):
        for block, value in runs:
            place = block + apart * (number - (len(series) - 1) / 2)
            placed.setdefault(block, []).append((place, value, colour))
    size = 40 if len(placed) <= 24 else 14
    for dots in placed.values():
        places, values, colours = zip(*dots, strict=True)
        axes.plot(places, values, color=SOFT, linewidth=1, alpha=0.6, zorder=1)
        axes.scatter(
            places, values, s=size, color=colours, edgecolor=PAPER, linewidth=0.8, zorder=2
        )
    scales.time(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(8 if layout.narrow else 16, integer=True))
    axes.set_xlim(min(placed) - 0.6, max(placed) + 0.6)
    axes.margins(y=0.1)
    axes.set_xlabel("block")
    return figure
