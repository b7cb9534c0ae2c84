# SPDX-License-Identifier: Apache-2.0
"""Numbers and names as people read them. U+00A0 keeps a number and its unit on one line."""

import math
import re

from tare.terminal import printable
from tare.verdict import number_text

NO_BREAK = "\u00a0"
MINUS = "\u2212"
_METRICS = {"cpu_service": "service CPU", "error_rate": "error rate"}


def duration(nanoseconds: float | None, *, signed: bool = False, digits: int = 3) -> str:
    """`1234567` as `1.23 ms`; a dash where there is none."""
    if nanoseconds is None or not math.isfinite(nanoseconds):
        return "–"
    return typeset(number_text.duration(nanoseconds, signed=signed, digits=digits))


def percent(fraction: float | None, *, signed: bool = True) -> str:
    """`0.0234` as `+2.3 %`; a dash where there is none."""
    if fraction is None or not math.isfinite(fraction):
        return "–"
    return typeset(number_text.percent(fraction, signed=signed))


def interval(low: float | None, high: float | None, unit: number_text.Unit = "ns") -> str:
    """Two effects as `+5.4 to +7.3 %`."""
    if low is None or high is None:
        return "–"
    return f"{percent(low).removesuffix(f'{NO_BREAK}%')} to {change(high, unit)}"


def change(effect: float | None, unit: number_text.Unit) -> str:
    """An effect on a metric of this unit: `+5.4 %`, of shares `+0.20 points`."""
    if effect is None or not math.isfinite(effect):
        return "–"
    return typeset(number_text.change(effect, unit))


def values(baseline: float | None, condition: float | None, unit: number_text.Unit) -> str:
    """Both sides: `34.7 µs → 35.1 µs`."""
    if baseline is None or condition is None:
        return "–"
    return typeset(f"{number_text.value(baseline, unit)} → {number_text.value(condition, unit)}")


def p_value(p: float | None) -> str:
    """A p-value to three decimals, or `< 0.001`."""
    if p is None:
        return "–"
    return f"<{NO_BREAK}0.001" if p < 0.001 else f"{p:.3f}"


def count(number: float | None) -> str:
    """`46000` as `46 000`, with thin spaces that do not break."""
    return "–" if number is None else f"{number:,.0f}".replace(",", "\u202f")


def metric(name: str) -> str:
    """A metric as people call it."""
    return _METRICS.get(name, name)


def plural(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count(number)}{NO_BREAK}{noun}{'' if number == 1 else 's'}"


def typeset(text: str) -> str:
    """Text whose numbers are on one line with their units, with minus signs and arrows."""
    text = re.sub(r"(?<![\w.-])-(?=\d)", MINUS, text).replace(" -> ", " → ")
    return re.sub(r"(\d) (%|ns|µs|ms|s|points|blocks?|runs?)(?!\w)", rf"\1{NO_BREAK}\2", text)


def safe(text: object, limit: int | None = None) -> str:
    """Text of unknown origin with control characters as escapes, at most `limit` long.

    HTML is escaped elsewhere; these would break XML, or hide or reorder what is read.
    """
    clean = printable(str(text))
    return clean if limit is None or len(clean) <= limit else f"{clean[: limit - 1]}…"
