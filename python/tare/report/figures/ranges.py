# SPDX-License-Identifier: Apache-2.0
"""How far each run lies from its siblings (Vinken 2022: minimum, mean and maximum statistic)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures.canvas import SOFT, Layout
from tare.report.words import both_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BETWEEN = 1.5
"""Room between two conditions, in runs."""
_LETTER = 8
"""Width of a letter in CSS pixels."""


@dataclass(frozen=True)
class Group:
    """One condition: least, mean and most of each of its runs."""

    name: str
    colour: str
    runs: Sequence[tuple[float, float, float]]


def draw(layout: Layout, panels: Sequence[tuple[str, Sequence[Group]]]) -> "Figure":
    """One panel for each title; a line a run from least to most, a dot at the mean."""
    rows, columns = (len(panels), 1) if layout.narrow else (1, len(panels))
    figure, grid = layout.figure((190 if layout.narrow else 270) * rows + 20, rows, columns)
    for axes, (title, groups) in zip(grid, panels, strict=True):
        start = 0.0
        middles = []
        for group in groups:
            places = [start + number for number in range(len(group.runs))]
            least, mean, most = zip(*group.runs, strict=True)
            axes.vlines(places, least, most, color=group.colour, linewidth=2, alpha=0.5)
            size = 22 if len(group.runs) <= 24 else 8
            axes.scatter(places, mean, s=size, color=group.colour, linewidth=0, zorder=3)
            middles.append((places[0] + places[-1]) / 2)
            start = places[-1] + 1 + _BETWEEN
        letters = max(int(0.85 * layout.width / columns / len(groups) / _LETTER), 3)
        axes.set_xticks(middles, [both_ends(group.name, letters) for group in groups])
        axes.set_title(title, loc="left", color=SOFT)
        axes.margins(y=0.1)
    return figure
