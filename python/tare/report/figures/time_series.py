# SPDX-License-Identifier: Apache-2.0
"""Metrics of machine and services over the time of day, a panel each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import Dots, Line, Value
from tare.report.figures.over_time import clock, time_of_day
from tare.report.figures.scales import Scale
from tare.terminal import both_ends

SHOWN = 18
"""Moments of a panel whose values show."""


@dataclass(frozen=True)
class TimeSeries:
    """The moments of one run: places in ns since the Unix epoch, and values."""

    name: str
    colour: str
    places: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Metric:
    """One panel."""

    title: str
    scale: Callable[[float, float], Scale]
    """The axis from a least to a greatest value."""
    write: Callable[[float], str]
    series: Sequence[TimeSeries]


def draw(layout: Layout, metrics: Sequence[Metric]) -> Figure:
    """A panel for each metric, all with the same time."""
    places = [at for metric in metrics for run in metric.series for at in run.places]
    columns = 1 if layout.narrow else min(2, len(metrics))
    axis = clock(min(places), max(places), 4)
    panels = [_panel(axis, metric) for metric in metrics]
    for panel in panels[-columns:]:
        panel.x_title = "time of day (UTC)"
    return Figure(panels, 130 if layout.narrow else 150, columns)


def _panel(axis: Scale, metric: Metric) -> Panel:
    values = [value for run in metric.series for value in run.values]
    low, high = min(values), max(values)
    room = 0.08 * (high - min(low, 0))
    panel = Panel(axis, metric.scale(min(low - room, 0) if low < 0 else 0, high + room),
                  metric.title)  # fmt: skip
    for run in metric.series:
        # A run of one moment has no line.
        panel.add(
            Line(run.places, run.values, run.colour, 1.2)
            if len(run.places) > 1
            else Dots(run.places, run.values, run.colour, 2)
        )
    moments = [
        (run.name, at, value)
        for run in metric.series
        for at, value in zip(run.places, run.values, strict=True)
    ]
    step = -(-len(moments) // SHOWN)
    for name, at, value in moments[step // 2 :: step]:
        text = f"{both_ends(name, 20)}, {time_of_day(at)}: {metric.write(value)}"
        panel.add(Value(at, value, text))
    return panel
