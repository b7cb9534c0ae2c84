# SPDX-License-Identifier: Apache-2.0
"""Round trips one after the other, on a logarithmic axis (Kahlhofer et al., figure 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import SOFT, Layout
from tare.report.words import both_ends, count

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Panel = tuple[str, str, "NDArray[np.float64]"]
"""A condition's name, its colour, its latencies in order."""


def draw(layout: Layout, panels: Sequence[Panel]) -> "Figure":
    """One panel a condition, all on the same axes, so that levels can be compared."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    columns = 1 if layout.narrow or len(panels) == 1 else 2 if len(panels) in (2, 4) else 3
    rows = -(-len(panels) // columns)
    height = 170 if layout.narrow else 210
    figure, grid = layout.figure(height * rows + 20, rows, columns, shared=True)
    low = min(float(values.min()) for _, _, values in panels)
    high = max(float(values.max()) for _, _, values in panels)
    for axes, (name, colour, values) in zip(grid, panels, strict=False):
        axes.plot(values, ".", color=colour, markersize=2.4, alpha=0.6, mew=0, rasterized=True)
        axes.set_title(both_ends(name, 40), loc="left", color=SOFT)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.margins(x=0.01)
    scales.log_time(grid[0], "y", low, high)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[len(panels) - columns : len(panels)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("request")
    return figure
