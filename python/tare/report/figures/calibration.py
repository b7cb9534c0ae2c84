# SPDX-License-Identifier: Apache-2.0
"""What is detected of a known delay, and what single pairs of runs say of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import INK, SOFT, Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_APART = 0.006
"""Distance between neighbouring statistics, as a share of the largest delay."""


@dataclass(frozen=True)
class Curve:
    """One statistic: a number at each delay in ns."""

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


def draw_shares(layout: Layout, curves: Sequence[Curve], share: float) -> "Figure":
    """The share of repetitions that detect each delay; `share` is what counts as detected."""
    figure, (axes,) = layout.figure(260 if layout.narrow else 300)
    axes.axhline(share, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    # Beside each other: many are equal.
    apart = _APART * max(curves[0].delays_ns)
    for number, curve in enumerate(curves):
        beside = apart * (number - (len(curves) - 1) / 2)
        axes.plot(
            [delay + beside for delay in curve.delays_ns],
            curve.values,
            color=curve.colour,
            linewidth=1.8,
            marker="o",
            markersize=4,
            alpha=0.9,
            clip_on=False,
        )
    scales.shares(axes.yaxis)
    axes.set_ylim(0, 1.02)
    _delays(axes, curves[0].delays_ns, 4 if layout.narrow else 12)
    axes.set_xlabel("added delay")
    return figure


def draw_ranges(layout: Layout, panels: Sequence[Ranges]) -> "Figure":
    """One panel each: the mean as a line, least and most as the band around it."""
    columns = 1 if layout.narrow else 2
    rows = -(-len(panels) // columns)
    figure, axes = layout.figure((190 if layout.narrow else 220) * rows + 30, rows, columns)
    for number, (one, panel) in enumerate(zip(axes, panels, strict=False)):
        one.fill_between(
            panel.delays_ns, panel.least, panel.most, color=panel.colour, alpha=0.18, linewidth=0
        )
        one.plot(
            panel.delays_ns, panel.mean, color=panel.colour, linewidth=1.8, marker="o", markersize=4
        )
        one.set_title(panel.title, loc="left", color=INK)
        one.margins(y=0.12)
        _delays(one, panel.delays_ns, 4 if layout.narrow else 6)
        if number >= len(panels) - columns:
            one.set_xlabel("added delay")
    return figure


def _delays(axes: "Axes", delays_ns: Sequence[float], most: int) -> None:
    """An axis of the delays, with labels for those that have room: about `most` of them."""
    from matplotlib.ticker import FixedLocator

    kept: list[float] = []
    for delay in delays_ns:
        if not kept or delay - kept[-1] >= max(delays_ns) / most:
            kept.append(delay)
    scales.time(axes.xaxis)
    axes.xaxis.set_major_locator(FixedLocator(kept))
