# SPDX-License-Identifier: Apache-2.0
"""Numbers and names as people read them. U+00A0 keeps a number and its unit on one line."""

import math
import re
import unicodedata

NO_BREAK = "\u00a0"
MINUS = "\u2212"
_METRICS = {"cpu_service": "service CPU"}
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def duration(nanoseconds: float | None, *, signed: bool = False) -> str:
    """`1234567` as `1.23 ms`: three significant digits in the unit that fits."""
    if nanoseconds is None or not math.isfinite(nanoseconds):
        return "–"
    size = abs(nanoseconds)
    scale, unit = next((pair for pair in _UNITS if size >= 0.9995 * pair[0]), _UNITS[-1])
    return f"{_sign(nanoseconds, signed)}{_significant(size / scale)}{NO_BREAK}{unit}"


def percent(fraction: float | None, *, signed: bool = True) -> str:
    """`0.0234` as `+2.3 %`: two significant digits, never finer than a hundredth of a percent."""
    if fraction is None or not math.isfinite(fraction):
        return "–"
    size = abs(fraction) * 100
    digits = 2 if size < 0.995 else 1 if size < 9.95 else 0
    text = f"{size:.{digits}f}"
    sign = _sign(fraction, signed) if float(text) else ""
    return f"{sign}{text}{NO_BREAK}%"


def interval(low: float | None, high: float | None) -> str:
    """Two fractions as `+5.4 to +7.3 %`."""
    if low is None or high is None:
        return "–"
    return f"{percent(low).removesuffix(f'{NO_BREAK}%')} to {percent(high)}"


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
    """Text in which numbers stay with their units and have a minus sign, not a hyphen."""
    text = re.sub(r"(?<![\w.-])-(?=\d)", MINUS, text)
    return re.sub(r"(\d) (%|ns|µs|ms|s|blocks?|runs?)(?!\w)", rf"\1{NO_BREAK}\2", text)


def safe(text: object, limit: int | None = None) -> str:
    """Text of unknown origin without control and direction characters, at most `limit` long.

    HTML is escaped elsewhere; what is removed here would break XML, hide or reorder what is read.
    """
    clean = "".join(
        character if unicodedata.category(character)[0] != "C" else "\ufffd"
        for character in str(text)
    )
    return clean if limit is None or len(clean) <= limit else f"{clean[: limit - 1]}…"


def _sign(value: float, signed: bool) -> str:
    if value < 0:
        return MINUS
    return "+" if signed and value > 0 else ""


def _significant(size: float) -> str:
    if size >= 99.95 or size == 0:
        return f"{size:.0f}"
    return f"{size:.1f}" if size >= 9.995 else f"{size:.2f}"
