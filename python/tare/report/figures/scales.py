# SPDX-License-Identifier: Apache-2.0
"""Scales: where a number is on an axis, and which ticks the axis has."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tare.report.typesetting import MINUS, NO_BREAK, count, duration

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LINEAR_BELOW = 4.0
"""A logarithmic axis over a smaller factor has ticks at equal differences."""


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis; `strong` labels have the colour of text."""

    at: float
    label: str
    strong: bool = False


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, which may be below `low`: then it runs backwards."""

    low: float
    high: float
    ticks: Sequence[Tick] = ()
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """The place of a value: 0 at `low`, 1 at `high`."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        return (value - low) / (high - low) if high != low else 0.5


def names(labels: Sequence[str], *, strong: Sequence[bool] | None = None) -> Scale:
    """One row for each label, the first at the top of a vertical axis."""
    marked = strong or [True] * len(labels)
    ticks = [
        Tick(row, label, of) for row, (label, of) in enumerate(zip(labels, marked, strict=True))
    ]
    return Scale(len(labels) - 0.5, -0.5, ticks)


def linear(
    low: float, high: float, label: Callable[[float], str], most: int = 5, *, integers: bool = False
) -> Scale:
    """An axis with at most about `most` ticks at round numbers."""
    if _is_point(low, high):
        room = abs(low) * 0.1 or 1.0
        low, high = low - room, high + room
    return Scale(low, high, [Tick(at, label(at)) for at in _round(low, high, most, integers)])


def numbers(low: float, high: float, most: int = 5) -> Scale:
    """An axis of counts."""
    return linear(low, high, count, most, integers=True)


def shares(low: float, high: float, most: int = 5, *, signed: bool = False) -> Scale:
    """An axis of fractions, with labels in percent."""

    def label(value: float) -> str:
        number = f"{abs(value) * 100:.6g}"
        sign = "" if number == "0" else MINUS if value < 0 else "+" if signed else ""
        return f"{sign}{number}{NO_BREAK}%"

    return linear(low, high, label, most)


def times(low: float, high: float, most: int = 5) -> Scale:
    """A linear axis of nanoseconds."""
    scale = linear(low, high, str, most)
    return replace(scale, ticks=_times([tick.at for tick in scale.ticks]))


def log_times(low: float, high: float, *, margin: float = 0.05) -> Scale:
    """A logarithmic axis of nanoseconds, with room at both ends."""
    low, high = max(low, 1.0), max(high, 1.0)
    room = 1.1 if _is_point(low, high) else (high / low) ** margin
    found = _logarithmic(low, high) if high / low >= _LINEAR_BELOW else _round(low, high, 5)
    low, high = low / room, high * room
    ticks = _times([at for at in found if low <= at <= high])
    return Scale(low, high, ticks, logarithmic=True)


def log_scale(low: float, high: float, label: Callable[[float], str]) -> Scale:
    """A logarithmic axis of other numbers."""
    ticks = [Tick(at, label(at)) for at in _logarithmic(low, high) if low <= at <= high]
    return Scale(low, high, ticks, logarithmic=True)


def tail(longest: float, *, with_median: bool) -> Scale:
    """Percentiles on -log10(1 - p): 0, 50 where there is room, 90, 99, 99.9 ... to `longest`."""
    labels = {0.0: "0"} | ({-math.log10(0.5): "50"} if with_median else {})
    labels |= {float(nines): _nines(nines) for nines in range(1, int(longest + 1e-9) + 1)}
    ticks = [Tick(at, f"{label}{NO_BREAK}%") for at, label in labels.items()]
    return Scale(0, longest or 1, ticks)  # one request has no tail


def extent(values: Iterable[float], room: float = 0.0) -> tuple[float, float]:
    """The least and the greatest finite value, with a share of their distance as room."""
    known = [value for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return low - room * (high - low), high + room * (high - low)


def _is_point(low: float, high: float) -> bool:
    """Whether numbers of double precision do not divide the axis."""
    return not high - low > 1e-9 * abs(high)


def _round(low: float, high: float, most: int, integers: bool = False) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, between `low` and `high`."""
    if _is_point(low, high):
        return [low]
    least = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in _STEPS if power * factor >= least * (1 - 1e-9))
    if integers:
        step = float(max(math.ceil(step), 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _logarithmic(low: float, high: float) -> list[float]:
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 2.2 else (1, 3) if decades < 3.5 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in steps]
    return found if decades < 10 else found[:: math.ceil(decades / 10)]


def _nines(nines: int) -> str:
    return f"{100 * (1 - 10.0**-nines):.{max(nines - 2, 0)}f}"


def _times(places: Sequence[float]) -> list[Tick]:
    """Ticks of nanoseconds, with as many digits as tell them apart."""
    labels: list[str] = []
    for digits in range(3, 18):
        labels = [_time(at, digits) for at in places]
        if len(set(labels)) == len(places):
            break
    return [Tick(at, label) for at, label in zip(places, labels, strict=True)]


def _time(value: float, digits: int) -> str:
    text = duration(value, digits=digits)
    number, unit = text.split(NO_BREAK)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}{NO_BREAK}{unit}"
