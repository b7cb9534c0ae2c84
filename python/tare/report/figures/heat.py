# SPDX-License-Identifier: Apache-2.0
"""Distances between all runs as squares, the stronger the colour the further apart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.figures.canvas import INK, SERIES, SOFT, Layout
from tare.report.words import both_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tare.stats.arrays import Array

_STEPS = 8
_PALEST = 0.06


def draw(
    layout: Layout, panels: "Sequence[tuple[str, Array]]", groups: Sequence[tuple[str, int]]
) -> "Figure":
    """One panel for each title and symmetric matrix; `groups` are names and numbers of its rows."""
    import numpy as np
    from matplotlib.colors import ListedColormap, to_rgb

    # One hue in several strengths: rasterised, it cannot follow the page's theme.
    hue = to_rgb(SERIES[2])
    shades = ListedColormap([(*hue, alpha) for alpha in np.linspace(_PALEST, 1, _STEPS)])
    rows, columns = (len(panels), 1) if layout.narrow else (1, len(panels))
    figure, grid = layout.figure((330 if layout.narrow else 430) * rows, rows, columns)
    ends = np.cumsum([size for _, size in groups])
    middles = ends - np.array([size for _, size in groups]) / 2 - 0.5
    names = [both_ends(name, 10 if layout.narrow else 16) for name, _ in groups]
    for number, (axes, (title, matrix)) in enumerate(zip(grid, panels, strict=True)):
        most = matrix[np.isfinite(matrix)].max(initial=0) or 1
        image = axes.imshow(matrix, cmap=shades, vmin=0, vmax=most, interpolation="none")
        for end in ends[:-1]:
            axes.axhline(end - 0.5, color=SOFT, linewidth=1)
            axes.axvline(end - 0.5, color=SOFT, linewidth=1)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.set_xticks([])
        # The rows of the second panel are those of the first.
        axes.set_yticks(middles, names if number == 0 or layout.narrow else [], color=INK)
        axes.set_title(title, loc="left", color=SOFT)
        bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=24)
        bar.outline.set_visible(False)
        bar.ax.patch.set_visible(False)
        bar.ax.tick_params(length=0)
    return figure
