# SPDX-License-Identifier: Apache-2.0
"""The shift function: the difference at each quantile, in one band that holds for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import BAND, SOFT, Layout
from tare.report.words import both_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tare.verdict.judgement import Quantile


@dataclass(frozen=True)
class Panel:
    """One condition."""

    title: str
    colour: str
    shift: "Sequence[Quantile]"


def draw(layout: Layout, panels: Sequence[Panel]) -> "Figure":
    """One panel a condition, all on one scale; quantiles stand at equal distances."""
    columns = 1 if layout.narrow else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure, grid = layout.figure(
        (180 if layout.narrow else 250) * rows + 30, rows, columns, shared=True
    )
    for axes, panel in zip(grid, panels, strict=False):
        places = range(len(panel.shift))
        least = [at.threshold for at in panel.shift]
        edges = [place - 0.5 for place in range(len(least) + 1)]
        below = [-one for one in least]
        axes.stairs(least, edges, baseline=below, fill=True, color=BAND, linewidth=0, zorder=0)
        axes.axhline(0, color=SOFT, linewidth=0.9, zorder=1)
        axes.fill_between(
            places,
            [at.low for at in panel.shift],
            [at.high for at in panel.shift],
            color=panel.colour,
            alpha=0.25,
            linewidth=0,
            zorder=2,
        )
        axes.plot(
            places,
            [at.relative for at in panel.shift],
            color=panel.colour,
            linewidth=1.8,
            marker="o",
            markersize=4,
            zorder=3,
        )
        axes.set_xticks(places[::2], [f"p{at.q * 100:g}" for at in panel.shift[::2]])
        axes.tick_params(labelbottom=True)
        axes.set_title(both_ends(panel.title, 40), loc="left", color=SOFT)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    scales.shares(grid[0].yaxis, signed=True)
    return figure
