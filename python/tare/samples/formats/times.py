# SPDX-License-Identifier: Apache-2.0
"""Times and durations of any spelling as whole nanoseconds, exactly; null where there is none."""

from __future__ import annotations

import re
from typing import Any

from tare.samples.sql import column as sql

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# As decimals of these digits every number stays exact, and times its unit within the engine's 38:
# what is too large becomes null here, not an error there.
_DIGITS = {"s": 25, "ms": 28, "us": 31, "ns": 34}
# The years 2010 to 2040 in seconds: a clock that counts from a machine's start is rarely there.
_PRESENT_DAY = 1_262_304_000, 2_208_988_800
_FARTHEST = 2**62 - 1
_ISO_8601 = (
    r"^\d{4}[-/]\d\d?[-/]\d\d?([T ]\d\d?:\d\d(:\d\d(\.\d+)?)?)?"
    r" ?(Z|UTC|[+-]\d\d(:?\d\d)?)?$"
)


def unit_in(name: str) -> str | None:
    """The unit at the end of a column's name, as in `took_ms` and `Latency (s)`."""
    *_, last = re.split(r"[^a-z0-9]+", name.lower().strip(" )]"))
    return last if last in NANOSECONDS else None


def nanoseconds(value: Any, unit: str) -> Any:
    """A number, or the text of a number, in `unit`, to the nearest nanosecond."""
    # The engine's casts leave out blanks around a number, and round halves away from zero: TRIM and
    # ROUND would do the same in ten times the time.
    number = value.try_cast(f"decimal({_DIGITS[unit]}, 15)")
    return (number * NANOSECONDS[unit]).try_cast("int64")


def of_text(text: Any, unit: str) -> Any:
    """`nanoseconds` of a column of texts, the same numbers in half of the time.

    The engine reads `1.5e6` as a whole number without decimals of 128 bits. That is used for up to
    the 15 digits after the point that `nanoseconds` keeps, and not for hexadecimal numbers, which
    `nanoseconds` refuses. What it does not understand, such as an exponent, is read as before.
    """
    exponent = len(str(NANOSECONDS[unit])) - 1
    is_short: Any = sql.function("STRLEN", text) <= sql.function("INSTR", text, ".") + 15
    is_decimal: Any = ~sql.function("LOWER", text).contains("x")
    quick: Any = (is_short & is_decimal).ifelse(text.concat(f"e{exponent}"), None)
    return sql.coalesce(quick.try_cast("int64"), nanoseconds(text, unit))


def bounded(time: Any) -> Any:
    """Nanoseconds; null beyond 146 years, so that no sum or difference of two is too large: the
    engine would refuse the whole file."""
    return time.between(-_FARTHEST, _FARTHEST).ifelse(time, sql.null("int64"))


def moment_of_text(column: Any, unit: str) -> Any:
    """`moment` of a column of a stored table of texts; looks at it first, to leave out what no
    row needs: dates, and units."""
    number: Any = column.try_cast("float64")
    rows = column.table_of()
    (seen,) = rows.aggregate(
        rows=rows.count(),
        numbers=number.count(),
        least=number.min(),
        most=number.max(),
        dates=_may_be_date(column).sum(),
    ).rows()
    if seen["dates"] or not seen["rows"]:
        return moment(column, unit)
    if named := unit_in(column.get_name()):
        return of_text(column, named)
    if seen["numbers"] == seen["rows"]:
        for name, size in NANOSECONDS.items():
            since, until = _present_day(size)
            if since <= seen["least"] and seen["most"] <= until:
                return of_text(column, name)
    return moment(column, unit)


def moment(column: Any, unit: str, *, stated: bool = False) -> Any:
    """A point in time: a number in the unit that the column's name has, or in `unit`.

    Unless `unit` was `stated`, the size of a present-day Unix time tells its unit by itself.
    Texts may be times of ISO 8601 too.
    """
    named = unit_in(column.get_name())
    known = nanoseconds(column, named or unit)
    if not stated and named is None:
        number: Any = column.try_cast("float64")
        known = sql.cases(
            *(
                (number.between(*_present_day(size)), nanoseconds(column, name))
                for name, size in NANOSECONDS.items()
            ),
            else_=known,
        )
    if not column.type().is_string():
        return known
    # Of numbers, which have neither sign, nothing of ISO 8601 is computed.
    return _may_be_date(column).ifelse(sql.coalesce(known, iso_8601(column)), known)


def _present_day(size: int) -> tuple[float, float]:
    """Its bounds in a unit of `size` ns."""
    since, until = _PRESENT_DAY
    return since * NANOSECONDS["s"] / size, until * NANOSECONDS["s"] / size


def _may_be_date(text: Any) -> Any:
    return text.contains("-") | text.contains("/")


def iso_8601(text: Any) -> Any:
    """A time such as 2026-01-31T12:00:00.123456789+01:00; without an offset it is UTC.

    Null with the name of a time zone, which the engine would pass over.
    """

    text = text.strip()
    hours: Any = text.re_extract(r":.*([+-]\d\d)(:?\d\d)?$", 1)
    minutes: Any = text.re_extract(r":.*[+-]\d\d:?(\d\d)$", 1).try_cast("int64").fill_null(0)
    sign: Any = hours.startswith("-").ifelse(-1, 1)
    offset: Any = hours.try_cast("int64").fill_null(0) * 3600 + sign * minutes * 60
    time: Any = text.re_search(_ISO_8601).ifelse(text, sql.null("string")).try_cast("timestamp(9)")
    return _epoch(time, "ns") - offset * NANOSECONDS["s"]


def epoch_ns(time: Any) -> Any:
    """A timestamp as nanoseconds since the Unix epoch; null beyond the years 1678 to 2262."""
    if time.type().timezone is None:
        return _epoch(time.try_cast("timestamp(9)"), "ns")
    # With a time zone the engine's type holds microseconds, and casts show its own zone.
    return nanoseconds(_epoch(time, "us"), "us")


def _epoch(time: Any, unit: str) -> Any:
    return sql.function(f"EPOCH_{unit.upper()}", time)
