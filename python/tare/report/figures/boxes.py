# SPDX-License-Identifier: Apache-2.0
"""Tukey's boxes side by side (Kahlhofer et al., figure 4): fliers hidden, no caps removed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.distributions import Box
from tare.report.figures import scales
from tare.report.figures.canvas import INK, Layout
from tare.report.words import both_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(layout: Layout, rows: Sequence[tuple[str, str, Box]]) -> "Figure":
    """One horizontal box for each name, colour and box, the first on top."""
    height = 46 if layout.narrow else 44
    figure, (axes,) = layout.figure(height * len(rows) + 40)
    drawn = axes.bxp(
        [
            {
                "med": box.median,
                "q1": box.first,
                "q3": box.third,
                "whislo": box.low,
                "whishi": box.high,
            }
            for _, _, box in rows
        ],
        orientation="horizontal",
        positions=range(len(rows)),
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        medianprops={"color": INK, "linewidth": 1.6, "solid_capstyle": "butt"},
    )
    for number, (_, colour, _) in enumerate(rows):
        drawn["boxes"][number].set(facecolor=colour, edgecolor="none", alpha=0.85)
    for kind in ("whiskers", "caps"):
        for number, line in enumerate(drawn[kind]):
            line.set(color=rows[number // 2][1], linewidth=1.2)
    limit = 14 if layout.narrow else 32
    axes.set_yticks(range(len(rows)), [both_ends(name, limit) for name, _, _ in rows], color=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", linewidth=0.7)
    scales.time(axes.xaxis)
    return figure
