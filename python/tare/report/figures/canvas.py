# SPDX-License-Identifier: Apache-2.0
"""Figures: panels with axes and marks, as inline SVG that follows the page's theme and width.

Each figure is drawn twice, wide and narrow, and CSS shows the drawing that fits: text stays
readable on a telephone because it is laid out for it, not shrunk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate

from markupsafe import Markup

from tare.report.figures.marks import Area, Mark, Value, number, paint, text_width
from tare.report.figures.scales import Scale, Tick

_GAP = 26
"""Between two columns of panels."""
_TICK_GAP = 8
"""Between a label and its axis."""


@dataclass(frozen=True)
class Layout:
    """One of the two widths that a figure is drawn for, in CSS pixels."""

    name: str
    width: int
    text: float

    @property
    def narrow(self) -> bool:
        return self.name == "narrow"

    def letters(self, columns: int) -> int:
        """The number of letters of a title that has room over one of several columns."""
        return int(0.8 * self.width / columns / text_width("0", self.text))


LAYOUTS = (Layout("wide", 960, 13), Layout("narrow", 350, 12))


@dataclass
class Panel:
    """One pair of axes and what is drawn in them, the first mark at the bottom."""

    x: Scale
    y: Scale
    title: str = ""
    x_title: str = ""
    grid: str = "y"
    """The axis, x or y, at whose ticks lines cross the panel; empty for none."""
    baseline: bool = True
    """Whether a line marks the x axis."""
    x_labels: bool = True
    y_labels: bool = True
    marks: list[Mark] = field(default_factory=list)

    def add(self, *marks: Mark) -> None:
        """Draws marks on top of the earlier marks."""
        self.marks.extend(marks)


@dataclass(frozen=True)
class Figure:
    """Panels row by row; `height` is that of one row of them, in CSS pixels."""

    panels: Sequence[Panel]
    height: float
    columns: int = 1


Draw = Callable[[Layout], Figure]


def inline(draw: Draw, label: str, layouts: Sequence[Layout] | None = None) -> Markup:
    """The drawings of one figure, usually for LAYOUTS; `label` is its content for people who
    cannot see it.
    """
    drawings = (svg(draw(layout), layout, label) for layout in layouts or LAYOUTS)
    return Markup("\n").join(Markup(drawing) for drawing in drawings)


def svg(figure: Figure, layout: Layout, label: str) -> str:
    """One drawing as an SVG element that fills the width it is given."""
    areas = _areas(figure, layout)
    rows = -(-len(figure.panels) // figure.columns)
    below: list[str] = []
    values: list[str] = []
    for panel, area in zip(figure.panels, areas, strict=True):
        below += _frame(panel, area)
        below += [mark.draw(area) for mark in panel.marks if not isinstance(mark, Value)]
        # The texts that show on demand are above all else.
        values += [mark.draw(area) for mark in panel.marks if isinstance(mark, Value)]
    role = "group" if values else "img"
    return (
        f'<svg class="{layout.name}" viewBox="0 0 {layout.width} {number(rows * figure.height)}"'
        f' font-size="{number(layout.text)}" role="{role}" aria-label="{escape(label)}">'
        f"{''.join(below)}{''.join(values)}</svg>"
    )


def _areas(figure: Figure, layout: Layout) -> list[Area]:
    """The place of each panel: all of one size, rows and columns in line."""
    columns, text, panels = figure.columns, layout.text, figure.panels
    lefts = [
        max(_left(panel, text) for panel in panels[place::columns]) for place in range(columns)
    ]
    rights = [
        max(_right(panel, text) for panel in panels[place::columns]) for place in range(columns)
    ]
    free = layout.width - (columns - 1) * _GAP - sum(lefts) - sum(rights)
    starts = accumulate(
        (left + free / columns + right + _GAP for left, right in zip(lefts, rights, strict=True)),
        initial=0.0,
    )
    inner = [start + left for start, left in zip(starts, lefts, strict=False)]
    top = max(text * 1.9 if panel.title else text * 0.7 for panel in panels)
    bottom = 4 + max(
        text * 1.9 * panel.x_labels + text * 1.5 * bool(panel.x_title) for panel in panels
    )
    return [
        Area(
            left=inner[place % columns],
            top=place // columns * figure.height + top,
            width=free / columns,
            height=figure.height - top - bottom,
            x_scale=panel.x,
            y_scale=panel.y,
            text=text,
            page=layout.width,
        )
        for place, panel in enumerate(panels)
    ]


def columns_for(panels: int, layout: Layout) -> int:
    """The number of columns for small panels of one kind."""
    return 1 if layout.narrow or panels == 1 else 2 if panels in (2, 4) else 3


def _left(panel: Panel, text: float) -> float:
    labels = [text_width(tick.label, text) for tick in panel.y.ticks if panel.y_labels]
    first = [_half(panel, text, tick) for tick in panel.x.ticks[:1] if panel.x_labels]
    return max([width + _TICK_GAP for width in labels] + first, default=2)


def _right(panel: Panel, text: float) -> float:
    last = [_half(panel, text, tick) for tick in panel.x.ticks[-1:] if panel.x_labels]
    return max(last, default=2)


def _half(panel: Panel, text: float, tick: Tick) -> float:
    """What a label at the end of the x axis needs beyond it."""
    at = panel.x.share(tick.at)
    return text_width(tick.label, text) / 2 + 2 if min(at, 1 - at) < 0.06 else 4


def _frame(panel: Panel, area: Area) -> list[str]:
    """Title, ticks with their labels, lines of the grid, names of the axes."""
    drawn = []
    bottom, right = area.top + area.height, area.left + area.width
    if panel.title:
        drawn.append(_text(area.left, area.top - area.text * 0.7, panel.title, "start"))
    for tick in panel.y.ticks:
        y = area.y(tick.at)
        if panel.grid == "y":
            drawn.append(_stroke(f"M{number(area.left)} {number(y)}H{number(right)}", "rule"))
        if panel.y_labels:
            place = area.left - _TICK_GAP
            drawn.append(_text(place, y + area.text * 0.35, tick.label, "end", strong=tick.strong))
    if panel.baseline:
        drawn.append(_stroke(f"M{number(area.left)} {number(bottom)}H{number(right)}", "rule"))
    reached = float("-inf")
    for tick in sorted(panel.x.ticks, key=lambda tick: panel.x.share(tick.at)):
        x = area.x(tick.at)
        if panel.grid == "x":
            drawn.append(_stroke(f"M{number(x)} {number(area.top)}V{number(bottom)}", "rule"))
        half = text_width(tick.label, area.text) / 2
        if panel.x_labels and x - half > reached:
            y = bottom + area.text * 1.5
            drawn.append(_text(x, y, tick.label, "middle", strong=tick.strong))
            reached = x + half + 4
    if panel.x_title:
        y = bottom + area.text * (3.1 if panel.x_labels else 1.5)
        drawn.append(_text(area.left + area.width / 2, y, panel.x_title, "middle"))
    return drawn


def _text(x: float, y: float, text: str, anchor: str, *, strong: bool = False) -> str:
    style = ' class="strong"' if strong else ""
    place = f'x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"'
    return f"<text {place}{style}>{escape(text)}</text>"


def _stroke(path: str, colour: str) -> str:
    return f'<path d="{path}" stroke="{paint(colour)}" stroke-width="0.8"/>'
