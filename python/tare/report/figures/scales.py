# SPDX-License-Identifier: Apache-2.0
"""Axes in the units that people read: times, percentiles, shares."""

import math
from typing import TYPE_CHECKING, Literal

from tare.report.words import MINUS, NO_BREAK, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


def log_time(axes: "Axes", which: Literal["x", "y"], low: float, high: float) -> None:
    """A logarithmic axis of nanoseconds from `low` to `high`, with room at both ends."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = max(low, 1.0), max(high, 1.0)
    margin = (high / low) ** 0.05 if high > low else 1.1
    limits = (low / margin, high * margin)
    axis: Axis
    if which == "x":
        axis = axes.xaxis
        axes.set(xscale="log", xlim=limits)
    else:
        axis = axes.yaxis
        axes.set(yscale="log", ylim=limits)
    spread = high / low
    if spread < 4:
        axis.set_major_locator(MaxNLocator(5))
    else:
        decades = math.log10(spread)
        steps = (1, 2, 5) if decades < 2.2 else (1, 3) if decades < 3.5 else (1,)
        axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_locator(NullLocator())


def time(axis: "Axis") -> None:
    """A linear axis of nanoseconds."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def tail(axis: "Axis", longest: float, *, with_median: bool) -> None:
    """Percentiles on -log10(1 - p): 0, 50 where there is room, 90, 99, 99.9 ... to `longest`."""
    labels = {0.0: "0"} | ({-math.log10(0.5): "50"} if with_median else {})
    labels |= {float(nines): _nines(nines) for nines in range(1, int(longest + 1e-9) + 1)}
    axis.set_ticks(list(labels), [f"{label}{NO_BREAK}%" for label in labels.values()])


def shares(axis: "Axis", steps: int = 5, *, signed: bool = False) -> None:
    """A linear axis of fractions, written in percent."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def tick(value: float, _: float) -> str:
        number = f"{abs(value) * 100:.6g}"
        sign = "" if number == "0" else MINUS if value < 0 else "+" if signed else ""
        return f"{sign}{number}{NO_BREAK}%"

    axis.set_major_locator(MaxNLocator(steps))
    axis.set_major_formatter(FuncFormatter(tick))


def _nines(nines: int) -> str:
    return f"{100 * (1 - 10.0**-nines):.{max(nines - 2, 0)}f}"


def _tick(value: float) -> str:
    text = duration(value)
    number, unit = text.split(NO_BREAK)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}{NO_BREAK}{unit}"
