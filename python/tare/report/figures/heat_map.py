# SPDX-License-Identifier: Apache-2.0
"""Distances between all runs as squares, the stronger the colour the further apart."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import SERIES, Matrix, Rule, Value
from tare.report.figures.scales import Scale, Tick
from tare.report.typesetting import count
from tare.terminal import both_ends

if TYPE_CHECKING:
    from tare.stats.arrays import Array


def draw(
    layout: Layout, panels: "Sequence[tuple[str, Array]]", groups: Sequence[tuple[str, int]]
) -> Figure:
    """One panel for each title and symmetric matrix; `groups` are names and numbers of its rows."""
    import numpy as np

    ends = list(accumulate(size for _, size in groups))
    middles = [end - size / 2 for end, (_, size) in zip(ends, groups, strict=True)]
    labels = [both_ends(name, 10 if layout.narrow else 16) for name, _ in groups]
    # The first row is on top: the axis runs backwards.
    rows = [Tick(middle, label, True) for middle, label in zip(middles, labels, strict=True)]
    drawn = []
    for place, (title, matrix) in enumerate(panels):
        most = float(matrix[np.isfinite(matrix)].max(initial=0)) or 1.0
        panel = Panel(
            x=Scale(0, ends[-1]),
            y=Scale(ends[-1], 0, rows),
            title=f"{title}, 0 to {count(most) if most >= 1_000 else f'{most:.3g}'}",
            x_labels=False,
            # The rows of the second panel are those of the first.
            y_labels=layout.narrow or place == 0,
            grid="",
            baseline=False,
            marks=[Matrix(matrix / most, SERIES[2])],
        )
        for end in ends[:-1]:
            panel.add(Rule(x=end), Rule(y=end))
        panel.add(*_means(matrix, [name for name, _ in groups], middles, [0, *ends]))
        drawn.append(panel)
    columns = 1 if layout.narrow else len(panels)
    return Figure(drawn, 300 if layout.narrow else 420, columns)


def _means(
    matrix: "Array", names: Sequence[str], middles: Sequence[float], ends: Sequence[int]
) -> list[Value]:
    """The mean distance of each two conditions, in the middle of their square."""
    import numpy as np

    found = []
    for row, name in enumerate(names):
        for column, other in enumerate(names[: row + 1]):
            square = matrix[ends[row] : ends[row + 1], ends[column] : ends[column + 1]]
            if row == column:
                square = square[~np.eye(len(square), dtype=bool)]
            known = square[np.isfinite(square)]
            if known.size:
                what = f"within {name}" if row == column else f"{other} to {name}"
                text = f"{both_ends(what, 40)}: mean {known.mean():.3g}"
                found.append(Value(middles[column], middles[row], text))
    return found
