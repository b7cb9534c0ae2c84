# SPDX-License-Identifier: Apache-2.0
"""Throughput, latency and failed requests over the time of day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import nan

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import Dots, Line, Value
from tare.report.figures.scales import Scale, Tick
from tare.report.result.distributions import Moment
from tare.report.typesetting import count, duration
from tare.terminal import both_ends

_STEPS_S = (0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600)
_DAY_S = 86_400
SHOWN = 12
"""Moments of a condition whose values show."""


@dataclass(frozen=True)
class Run:
    """One run of a condition; an invalid run is a broken line."""

    moments: Sequence[Moment]
    valid: bool


@dataclass(frozen=True)
class Condition:
    """One condition and its runs."""

    name: str
    colour: str
    runs: Sequence[Run]


def draw(layout: Layout, conditions: Sequence[Condition], width_ns: float) -> Figure:
    """A panel each for throughput, latency and, if any request failed, failed requests."""
    every = [moment for of in conditions for run in of.runs for moment in run.moments]
    start, end = min(moment.at_ns for moment in every), max(moment.at_ns for moment in every)
    axis = clock(start - width_ns / 2, end + width_ns / 2, 4 if layout.narrow else 8)
    rates = [moment.rate for moment in every if moment.rate is not None]
    medians = [moment.median_ns for moment in every if moment.median_ns is not None]
    slow = [moment.slow_ns for moment in every if moment.slow_ns is not None]
    panels = []
    if rates:
        panels.append(Panel(axis, scales.numbers(0, 1.08 * max(rates), 4), "requests per second"))
        _draw_lines(panels[-1], conditions, "rate", "requests/s")
    if medians:
        latency = scales.log_times(min(medians), max(slow))
        panels.append(Panel(axis, latency, "latency: p50, and p99 as a thin line"))
        _draw_lines(panels[-1], conditions, "slow_ns", "", thin=True)
        _draw_lines(panels[-1], conditions, "median_ns", "p50")
    failed = max(moment.failed for moment in every)
    if failed:
        panels.append(Panel(axis, scales.numbers(0, 1.1 * failed, 3), "failed requests"))
        for of in conditions:
            shown = [moment for run in of.runs for moment in run.moments if moment.failed]
            places = [moment.at_ns for moment in shown]
            panels[-1].add(Dots(places, [moment.failed for moment in shown], of.colour, 3))
            for moment in shown[:SHOWN]:
                text = (
                    f"{both_ends(of.name, 20)}, {time_of_day(moment.at_ns)}: {count(moment.failed)}"
                )
                panels[-1].add(Value(moment.at_ns, moment.failed, f"{text} failed"))
    if panels:
        panels[-1].x_title = "time of day (UTC)"
    return Figure(panels, 170 if layout.narrow else 200)


def _draw_lines(
    panel: Panel, conditions: Sequence[Condition], name: str, unit: str, *, thin: bool = False
) -> None:
    width, opacity = (0.8, 0.45) if thin else (1.5, 1.0)
    for of in conditions:
        for run in of.runs:
            places = [moment.at_ns for moment in run.moments]
            heights = [getattr(moment, name) for moment in run.moments]
            known = [nan if height is None else height for height in heights]
            line = Line(places, known, of.colour, width, opacity, dashed=not run.valid)
            # A run of one moment has no line.
            panel.add(line if len(places) > 1 else Dots(places, known, of.colour, 2, opacity))
    for of in () if thin else conditions:
        moments = [moment for run in of.runs for moment in run.moments]
        step = -(-len(moments) // SHOWN)
        for moment in moments[step // 2 :: step]:
            if (value := getattr(moment, name)) is not None:
                amount = (
                    f"{unit} {duration(value)}" if name.endswith("ns") else f"{count(value)} {unit}"
                )
                text = f"{both_ends(of.name, 20)}, {time_of_day(moment.at_ns)}: {amount}"
                panel.add(Value(moment.at_ns, value, text))


def clock(low: float, high: float, most: int) -> Scale:
    """An axis of nanoseconds since the Unix epoch, with the time of day at round steps."""
    seconds = (high - low) / 1e9
    days = _DAY_S * max(-(-seconds // (_DAY_S * most)), 1)
    step = next((size for size in _STEPS_S if seconds / size <= most), days)
    first = -(-low / 1e9 // step)
    ticks = []
    number = 0
    while (at := (first + number) * step) * 1e9 <= high:
        ticks.append(Tick(at * 1e9, time_of_day(at * 1e9, step)))
        number += 1
    return Scale(low, high, ticks)


def time_of_day(ns: float, step_s: float = 1.0) -> str:
    """In UTC, as precisely as a step of an axis needs it."""
    moment = datetime.fromtimestamp(ns / 1e9, UTC)
    if step_s >= _DAY_S:
        return f"{moment:%d %b}"
    if step_s < 1:
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"
    return f"{moment:%H:%M:%S}" if step_s < 60 else f"{moment:%H:%M}"
