# SPDX-License-Identifier: Apache-2.0
"""The levels on which each run stood, one after the other (Barrett et al. 2017, figure 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import BAND, SOFT, Layout
from tare.report.words import both_ends, count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tare.stats.steady import Steadiness

_BROKEN = (0, (4, 3))


@dataclass(frozen=True)
class Panel:
    """One condition and its runs, each of which has segments."""

    title: str
    colour: str
    runs: "Sequence[Steadiness]"


def draw(layout: Layout, panels: Sequence[Panel], cut: int) -> "Figure":
    """One panel a condition, one line a run; shaded are the first `cut` requests, left out."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    columns = 1 if layout.narrow else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    height = (150 if layout.narrow else 220) * rows + 20
    figure, grid = layout.figure(height, rows, columns, shared=True)
    for axes, panel in zip(grid, panels, strict=False):
        if cut:
            axes.axvspan(0, cut, color=BAND, linewidth=0, zorder=0)
        for run in panel.runs:
            axes.stairs(
                [one.level for one in run.segments],
                [run.segments[0].start, *(one.end for one in run.segments)],
                baseline=None,
                color=panel.colour,
                linewidth=1.4,
                linestyle="solid" if run.cut is not None else _BROKEN,
                alpha=0.75,
            )
        axes.set_title(both_ends(panel.title, 40), loc="left", color=SOFT)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.margins(x=0)
    levels = [one.level for panel in panels for run in panel.runs for one in run.segments]
    scales.log_time(grid[0], "y", min(levels), max(levels))
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[len(panels) - columns : len(panels)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("request")
    return figure
