# SPDX-License-Identifier: Apache-2.0
"""What a number of blocks can find."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.figures import marks, scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.typesetting import percent, plural
from tare.terminal import both_ends


@dataclass(frozen=True)
class Curve:
    """At each number of blocks: the chance to find the threshold, the least difference found."""

    chance: Sequence[float]
    least: Sequence[float]


@dataclass(frozen=True)
class Line:
    """One condition: with the scatter that it had, and with as much as it may well have."""

    name: str
    colour: str
    likely: Curve
    careful: Curve


def draw(
    layout: Layout, lines: Sequence[Line], blocks: Sequence[int], now: int, share: float
) -> Figure:
    """Chances and least differences over `blocks`; `now` is the number of them that ran."""
    most = max(
        (at for line in lines for at in (*line.likely.least, *line.careful.least)), default=1
    )
    panels = []
    for name, title, high in (
        ("chance", "chance to find the threshold", 1.02),
        ("least", f"least difference found in {share * 100:.0f} %", 1.05 * most),
    ):
        panel = Panel(
            x=scales.numbers(min(now, blocks[0]), blocks[-1], 5),
            y=scales.shares(0, high),
            title=title,
            x_title="blocks",
        )
        if name == "chance":
            panel.add(marks.Rule(y=share, dashed=True))
        panel.add(marks.Rule(x=now))
        for line in lines:
            likely, careful = getattr(line.likely, name), getattr(line.careful, name)
            # A curve begins where there is a least difference at all.
            first, second = (blocks[len(blocks) - len(curve) :] for curve in (likely, careful))
            shared = min(len(first), len(second))
            low, high_end = likely[len(likely) - shared :], careful[len(careful) - shared :]
            panel.add(marks.Band(blocks[len(blocks) - shared :], low, high_end, line.colour, 0.18))
            panel.add(marks.Line(first, likely, line.colour))
            for at in _shown(len(likely)):
                text = f"{plural(first[at], 'block')}: {percent(likely[at], signed=False)}"
                name_of = f"{both_ends(line.name, 20)}, " if len(lines) > 1 else ""
                panel.add(marks.Value(first[at], likely[at], name_of + text))
        panels.append(panel)
    return Figure(panels, 220 if layout.narrow else 300, 1 if layout.narrow else 2)


def _shown(points: int) -> list[int]:
    """The points whose values show: about five, with both ends."""
    return sorted({round(place * (points - 1) / 4) for place in range(5)}) if points else []
