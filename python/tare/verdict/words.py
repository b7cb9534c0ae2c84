# SPDX-License-Identifier: Apache-2.0
"""How numbers are said to a person."""

from __future__ import annotations

UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


def percent(fraction: float, sign: bool = True) -> str:
    """A fraction in percent with two or three digits that mean something: `+2.4 %`."""
    value = fraction * 100
    digits = 2 if abs(value) < 1 else 1 if abs(value) < 100 else 0
    return f"{value:{'+' if sign else ''}.{digits}f} %"


def duration(nanoseconds: float, sign: bool = False) -> str:
    """A duration in the unit that fits it: `+48.2 µs`."""
    plus = "+" if sign else ""
    for size, unit in UNITS:
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:{plus}.3g} {unit}"
    return f"{nanoseconds:{plus}.0f} ns"


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 run`, `46,000 requests`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
