# SPDX-License-Identifier: Apache-2.0
"""Marks of a panel, in units of its data: each mark draws itself as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from tare.report.figures.png import shades
from tare.report.figures.scales import Scale
from tare.terminal import both_ends

if TYPE_CHECKING:
    from tare.stats.arrays import Array

INK, SOFT, RULE, BAND, PAPER = "ink", "soft", "rule", "band", "page"
"""Colours of the page's theme."""

# Each has at least 3:1 contrast on the page in light and in dark, so that images, which cannot
# follow the theme, serve both. The baseline is the first.
SERIES = ("#78808c", "#d1571f", "#2f7fd6", "#17917a", "#a660c8", "#a67c00", "#d64a7f", "#5a8f29")

_LETTER = 0.64
"""Width of a digit and of most letters, in font sizes; fonts differ by a tenth."""
_NARROW, _WIDE = frozenset(" \u00a0\u202f.,:;'!|ijltf()"), frozenset("%@mwMWµ→−+")
_BOLD = 1.1
"""Width of bold text."""
_REACH = 9
"""Radius of the area of a value that the pointer finds, in CSS pixels."""


@dataclass(frozen=True)
class Area:
    """The place of a panel in CSS pixels, and its scales."""

    left: float
    top: float
    width: float
    height: float
    x_scale: Scale
    y_scale: Scale
    text: float
    """Size of text."""
    page: float
    """Width of the whole figure."""

    def x(self, value: float) -> float:
        return self.left + self.width * self.x_scale.share(value)

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - self.y_scale.share(value))


class Mark(Protocol):
    """Anything that a panel shows."""

    def draw(self, area: Area) -> str:
        """SVG elements."""


@dataclass(frozen=True)
class Line:
    """A line through points, with a gap at each that is not finite."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    width: float = 1.8
    opacity: float = 1.0
    dashed: bool = False
    dots: float = 0
    """Radius of a dot at each point; 0 for none."""

    def draw(self, area: Area) -> str:
        path, dots = [], []
        begins = True
        for x, y in zip(self.x, self.y, strict=True):
            if not (math.isfinite(x) and math.isfinite(y)):
                begins = True
                continue
            at = f"{number(area.x(x))} {number(area.y(y))}"
            path.append(f"{'M' if begins else 'L'}{at}")
            dots.append(f"M{at}h0")
            begins = False
        dash = ' stroke-dasharray="4 3"' if self.dashed else ""
        line = (
            f'<path d="{"".join(path)}" fill="none" stroke="{paint(self.colour)}"'
            f' stroke-width="{number(self.width)}"{opacity(self.opacity)}{dash}/>'
        )
        if not path:
            return ""
        return line + _round_dots(dots, self.dots, self.colour, self.opacity) * bool(self.dots)


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    colour: str
    opacity: float = 1.0

    def draw(self, area: Area) -> str:
        there = zip(self.x, self.high, strict=False)
        back = zip(reversed(self.x[: len(self.low)]), reversed(self.low), strict=False)
        points = [
            f"{number(area.x(x))} {number(area.y(y))}"
            for x, y in (*there, *back)
            if math.isfinite(x) and math.isfinite(y)
        ]
        fill = f'fill="{paint(self.colour)}"{opacity(self.opacity)}'
        return f'<path d="M{"L".join(points)}z" {fill}/>' if points else ""


@dataclass(frozen=True)
class Dots:
    """Round dots; `ringed` dots have a ring in the colour of the page."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    radius: float = 3.0
    opacity: float = 1.0
    ringed: bool = False

    def draw(self, area: Area) -> str:
        dots = [
            f"M{number(area.x(x))} {number(area.y(y))}h0"
            for x, y in zip(self.x, self.y, strict=True)
        ]
        ring = _round_dots(dots, self.radius + 0.9, PAPER, 1.0) if self.ringed else ""
        return ring + _round_dots(dots, self.radius, self.colour, self.opacity)


@dataclass(frozen=True)
class Box:
    """A filled rectangle; an end that is None is the end of the panel."""

    x0: float | None
    x1: float | None
    y0: float | None
    y1: float | None
    colour: str
    opacity: float = 1.0

    def draw(self, area: Area) -> str:
        x0, x1 = (
            end if value is None else area.x(value)
            for value, end in ((self.x0, area.left), (self.x1, area.left + area.width))
        )
        y0, y1 = (
            end if value is None else area.y(value)
            for value, end in ((self.y0, area.top), (self.y1, area.top + area.height))
        )
        return (
            f'<path d="M{number(x0)} {number(y0)}H{number(x1)}V{number(y1)}H{number(x0)}z"'
            f' fill="{paint(self.colour)}"{opacity(self.opacity)}/>'
        )


@dataclass(frozen=True)
class Rule:
    """A straight line over the whole panel, at one x or at one y."""

    x: float | None = None
    y: float | None = None
    colour: str = SOFT
    width: float = 0.9
    dashed: bool = False

    def draw(self, area: Area) -> str:
        if self.x is not None:
            path = f"M{number(area.x(self.x))} {number(area.top)}v{number(area.height)}"
        else:
            path = f"M{number(area.left)} {number(area.y(self.y or 0.0))}h{number(area.width)}"
        dash = ' stroke-dasharray="4 3"' if self.dashed else ""
        return (
            f'<path d="{path}" stroke="{paint(self.colour)}"'
            f' stroke-width="{number(self.width)}"{dash}/>'
        )


@dataclass(frozen=True)
class Matrix:
    """Strengths from 0 to 1 as cells of one colour over the whole panel, the first row on top.

    Cells that are not finite are empty, as those of strength 0 are where `empty` is true.
    """

    strengths: "Array"
    colour: str
    empty: bool = False

    def draw(self, area: Area) -> str:
        image = shades(self.strengths, self.colour, empty=self.empty)
        return (
            f'<image x="{number(area.left)}" y="{number(area.top)}" width="{number(area.width)}"'
            f' height="{number(area.height)}" preserveAspectRatio="none" class="cells"'
            f' href="data:image/png;base64,{image}"/>'
        )


@dataclass(frozen=True)
class Raster:
    """More points than SVG should have: a picture of them, by `cells` of the panel's pixels."""

    x: "Array"
    y: "Array"
    colour: str
    cell: float = 1.4
    """Width of a point in CSS pixels."""

    def draw(self, area: Area) -> str:
        import numpy as np

        columns, rows = (max(int(size / self.cell), 1) for size in (area.width, area.height))
        at = [
            (_shares(values, scale) * size).astype(np.int64).clip(0, size - 1)
            for values, scale, size in (
                (self.x, area.x_scale, columns),
                (self.y, area.y_scale, rows),
            )
        ]
        counted = np.bincount((rows - 1 - at[1]) * columns + at[0], minlength=rows * columns)
        # A point is seen by itself; where there are many they add up.
        strengths = np.float64(1) - 0.45 ** counted.reshape(rows, columns).astype(np.float64)
        return Matrix(strengths, self.colour, empty=True).draw(area)


@dataclass(frozen=True)
class Value:
    """A text that shows at a point while the pointer is there, or the keyboard's focus."""

    x: float
    y: float
    text: str
    bar: bool = False
    """Whether the whole height at x belongs to it."""
    bar_width: float = 0.0
    """Of a bar, in units of x; 0 for a narrow bar."""

    def draw(self, area: Area) -> str:
        x, y = area.x(self.x), area.y(self.y)
        if self.bar:
            half = max(abs(area.x(self.x + self.bar_width / 2) - x), 3)
            target = (
                f'<rect x="{number(x - half)}" y="{number(area.top)}" width="{number(2 * half)}"'
                f' height="{number(area.height)}"/>'
                f'<circle cx="{number(x)}" cy="{number(y)}" r="4"/>'
            )
        else:
            target = f'<circle cx="{number(x)}" cy="{number(y)}" r="{_REACH}"/>'
        shown = both_ends(self.text, int(area.page / (_BOLD * area.text * _LETTER)))
        half = _BOLD * text_width(shown, area.text) / 2
        middle = min(max(x, half + 2), area.page - half - 2)
        above = y - 14 if y - 14 - area.text > 0 else y + 14 + area.text
        label = escape(self.text)
        place = f'x="{number(middle)}" y="{number(above)}" text-anchor="middle"'
        return (
            f'<g class="value" tabindex="0" role="img" aria-label="{label}">{target}'
            f"<text {place}>{escape(shown)}</text></g>"
        )


def stairs(edges: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The corners of a line that has each value between its two edges."""
    x = [edge for pair in pairwise(edges) for edge in pair]
    y = [value for value in values for _ in range(2)]
    return x, y


def text_width(text: str, size: float) -> float:
    """The width of text in CSS pixels, rather too large: the font is the reader's."""
    letters = sum(
        0.6 if letter in _NARROW else 1.5 if letter in _WIDE or ord(letter) > 0x2E80 else 1.0
        for letter in text
    )
    return letters * size * _LETTER


def paint(colour: str) -> str:
    """A colour of a series, or of the page's theme, as SVG has it."""
    return colour if colour.startswith("#") else f"var(--{colour})"


def number(value: float) -> str:
    """A tenth of a pixel is as much as is seen."""
    return f"{value:.1f}".removesuffix(".0")


def opacity(value: float) -> str:
    """The attribute, where it says anything."""
    return "" if value >= 1 else f' opacity="{value:.2g}"'


def _round_dots(dots: Sequence[str], radius: float, colour: str, strength: float) -> str:
    return (
        f'<path d="{"".join(dots)}" stroke="{paint(colour)}" stroke-width="{number(2 * radius)}"'
        f' stroke-linecap="round"{opacity(strength)}/>'
    )


def _shares(values: "Array", scale: Scale) -> "Array":
    import numpy as np

    if not scale.logarithmic:
        return (values - scale.low) / (scale.high - scale.low)
    low, high = math.log(scale.low), math.log(scale.high)
    found: Array = (np.log(values) - low) / (high - low)
    return found
