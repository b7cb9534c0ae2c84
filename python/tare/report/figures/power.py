# SPDX-License-Identifier: Apache-2.0
"""What a number of blocks can find."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import SOFT, Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BROKEN = (0, (4, 3))


@dataclass(frozen=True)
class Curve:
    """At each number of blocks: the chance to find the threshold, the least difference found."""

    chance: Sequence[float]
    least: Sequence[float]


@dataclass(frozen=True)
class Line:
    """One condition: with the scatter that it had, and with as much as it may well have."""

    colour: str
    likely: Curve
    careful: Curve


def draw(
    layout: Layout, lines: Sequence[Line], blocks: Sequence[int], now: int, share: float
) -> "Figure":
    """Chances and least differences over `blocks`; `now` is how many there are."""
    from matplotlib.ticker import MaxNLocator

    rows, columns = (2, 1) if layout.narrow else (1, 2)
    figure, axes = layout.figure((200 if layout.narrow else 290) * rows + 10, rows, columns)
    chance, least = axes
    chance.axhline(share, color=SOFT, linewidth=0.9, linestyle=_BROKEN)
    for one, name in ((chance, "chance"), (least, "least")):
        one.axvline(now, color=SOFT, linewidth=0.9)
        for line in lines:
            likely, careful = getattr(line.likely, name), getattr(line.careful, name)
            one.fill_between(
                blocks, likely, careful, color=line.colour, alpha=0.18, linewidth=0, zorder=2
            )
            one.plot(blocks, likely, color=line.colour, linewidth=1.8, zorder=3)
        one.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        one.set_xlim(min(now, blocks[0]), blocks[-1])
        one.set_ylim(bottom=0)
        scales.shares(one.yaxis)
        one.set_xlabel("blocks")
    chance.set_ylim(0, 1.02)
    chance.set_title("chance to find the threshold", loc="left", color=SOFT)
    least.set_title(f"least difference found in {share * 100:.0f} %", loc="left", color=SOFT)
    return figure
