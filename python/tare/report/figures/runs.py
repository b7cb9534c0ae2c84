# SPDX-License-Identifier: Apache-2.0
"""The primary metric of every run, block by block: what the verdict really compares."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import PAPER, RULE, Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Dot = tuple[int, str, float]
"""Block, colour, value in nanoseconds."""


def draw(layout: Layout, dots: Sequence[Dot]) -> "Figure":
    """One dot a run; the runs of a block are joined: they belong together."""
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = layout.figure(240 if layout.narrow else 300)
    blocks = sorted({block for block, _, _ in dots})
    for block in blocks:
        values = [value for other, _, value in dots if other == block]
        axes.vlines(block, min(values), max(values), color=RULE, linewidth=3, zorder=1)
    size = 36 if len(blocks) <= 24 else 16
    for block, colour, value in dots:
        axes.scatter(block, value, s=size, color=colour, edgecolor=PAPER, linewidth=0.8, zorder=2)
    scales.time(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(8 if layout.narrow else 16, integer=True))
    axes.set_xlim(blocks[0] - 0.6, blocks[-1] + 0.6)
    axes.margins(y=0.1)
    axes.set_xlabel("block")
    return figure
