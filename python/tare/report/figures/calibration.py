# SPDX-License-Identifier: Apache-2.0
"""The share of repetitions that detect a known delay, and single pairs of runs at each delay."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import Band, Line, Rule, Value
from tare.report.figures.scales import Scale, Tick
from tare.report.typesetting import duration, percent

_APART = 0.006
"""Distance between neighbouring statistics, as a share of the largest delay."""


@dataclass(frozen=True)
class Curve:
    """One statistic: a number at each delay in ns."""

    name: str
    colour: str
    delays_ns: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Ranges:
    """Least, mean and most of a number over runs, at each delay in ns."""

    title: str
    colour: str
    delays_ns: Sequence[float]
    least: Sequence[float]
    mean: Sequence[float]
    most: Sequence[float]


def draw_shares(layout: Layout, curves: Sequence[Curve], share: float) -> Figure:
    """The share of repetitions that detect each delay; `share` is what counts as detected."""
    # Next to each other: many are equal.
    apart = _APART * max(curves[0].delays_ns)
    panel = Panel(
        x=_delays(curves[0].delays_ns, 4 if layout.narrow else 10, len(curves) * apart),
        y=scales.shares(0, 1.02),
        x_title="added delay",
        marks=[Rule(y=share, dashed=True)],
    )
    for number, curve in enumerate(curves):
        moved = [delay + apart * (number - (len(curves) - 1) / 2) for delay in curve.delays_ns]
        panel.add(Line(moved, curve.values, curve.colour, opacity=0.9, dots=3))
        for x, delay, value in zip(moved, curve.delays_ns, curve.values, strict=True):
            if isfinite(value):  # a delay that was not tried has no share
                shown = percent(value, signed=False)
                panel.add(Value(x, value, f"{curve.name}: {shown} at {duration(delay)}"))
    return Figure([panel], 260 if layout.narrow else 300)


def draw_ranges(layout: Layout, panels: Sequence[Ranges]) -> Figure:
    """One panel each: the mean as a line, least and most as the band around it."""
    columns = 1 if layout.narrow else 2
    drawn = []
    for ranges in panels:
        low, high = scales.extent([*ranges.least, *ranges.most], 0.12)
        panel = Panel(
            x=_delays(ranges.delays_ns, 4 if layout.narrow else 5),
            y=scales.linear(low, high, "{:g}".format, 4),
            title=ranges.title,
            x_title="added delay",
            marks=[Band(ranges.delays_ns, ranges.least, ranges.most, ranges.colour, 0.18)],
        )
        panel.add(Line(ranges.delays_ns, ranges.mean, ranges.colour, dots=3))
        for delay, mean in zip(ranges.delays_ns, ranges.mean, strict=True):
            panel.add(Value(delay, mean, f"mean {mean:.3g} at {duration(delay)}"))
        drawn.append(panel)
    return Figure(drawn, 220 if layout.narrow else 240, columns)


def _delays(delays_ns: Sequence[float], most: int, room: float = 0.0) -> Scale:
    """An axis of the delays, with labels for those that have room: about `most` of them."""
    shown: list[float] = []
    for delay in delays_ns:
        if not shown or delay - shown[-1] >= max(delays_ns) / most:
            shown.append(delay)
    low, high = scales.extent(delays_ns, 0.02)
    return Scale(low - room, high + room, [Tick(delay, duration(delay)) for delay in shown])
