# SPDX-License-Identifier: Apache-2.0
"""Numbers as text for people: on a terminal, in a reason and in a report alike."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["ns", "requests/s", "share"]
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def percent(fraction: float, *, signed: bool = True) -> str:
    """`0.0234` as `+2.3 %`: two decimals below 1 %, none from 100 %, one between."""
    size = abs(fraction) * 100
    digits = 2 if size < 0.995 else 1 if size < 99.95 else 0
    return f"{_with_sign(fraction, f'{size:,.{digits}f}', signed)} %"


def duration(nanoseconds: float, *, signed: bool = False, digits: int = 3) -> str:
    """`48236` as `48.2 µs`: so many significant digits, or all before the point, in fitting units.

    `digits` is at least 3.
    """
    size = abs(nanoseconds)
    # What would be rounded to 1000 of a unit is 1 of the next.
    below = 1 - 0.5 * 10**-digits
    scale, unit = next((pair for pair in UNITS if size >= below * pair[0]), UNITS[-1])
    size /= scale
    before = 1 + (size >= 10 * below) + (size >= 100 * below)
    after = digits - before if size else 0
    return f"{_with_sign(nanoseconds, f'{size:.{after}f}', signed)} {unit}"


def value(amount: float, unit: Unit, *, signed: bool = False) -> str:
    """An amount with its unit: `34.7 µs`, `24,310/s`, `0.12 %`."""
    if unit == "ns":
        return duration(amount, signed=signed)
    if unit == "share":
        return percent(amount, signed=signed)
    digits = max(0, 2 - floor(log10(abs(amount)))) if amount else 0
    return f"{_with_sign(amount, f'{abs(amount):,.{digits}f}', signed)}/s"


def change(relative: float, unit: Unit) -> str:
    """An effect: `+2.3 %` of the baseline, or of shares `+0.20 points`."""
    return percent(relative).removesuffix(" %") + (" points" if unit == "share" else " %")


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 run`, `46,000 requests`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(items: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` items, and how many more there are: `a, b and 3 more`."""
    more = len(items) - most
    return separator.join(items[:most]) + (f" and {more} more" if more > 0 else "")


def _with_sign(value: float, size: str, signed: bool) -> str:
    """What is rounded to zero has no sign."""
    if float(size.replace(",", "")) == 0:
        return size
    return f"-{size}" if value < 0 else f"+{size}" if signed else size
