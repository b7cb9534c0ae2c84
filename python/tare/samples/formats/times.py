# SPDX-License-Identifier: Apache-2.0
"""Times and durations of any spelling as whole nanoseconds, exactly; null where there is none."""

from __future__ import annotations

import re
from typing import Any

from tare.samples import column as sql

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# As decimals of these digits every number stays exact, and times its unit within the engine's 38:
# what is too large becomes null here, not an error there.
_DIGITS = {"s": 25, "ms": 28, "us": 31, "ns": 34}
# The years 2010 to 2040 in seconds: a clock that counts from a machine's start is rarely there.
_PRESENT_DAY = 1_262_304_000, 2_208_988_800
_ISO_8601 = (
    r"^\d{4}[-/]\d\d?[-/]\d\d?([T ]\d\d?:\d\d(:\d\d(\.\d+)?)?)?"
    r" ?(Z|UTC|[+-]\d\d(:?\d\d)?)?$"
)


def unit_in(name: str) -> str | None:
    """The unit at the end of a column's name, as in `took_ms` and `Latency (s)`."""
    *_, last = re.split(r"[^a-z0-9]+", name.lower().strip(" )]"))
    return last if last in NANOSECONDS else None


def nanoseconds(value: Any, unit: str) -> Any:
    """A number, or the text of one, in `unit`, to the nearest nanosecond."""
    # The engine's casts leave out blanks around a number, and round halves away from zero: TRIM and
    # ROUND would do the same in ten times the time.
    number = value.try_cast(f"decimal({_DIGITS[unit]}, 15)")
    return (number * NANOSECONDS[unit]).try_cast("int64")


def moment(column: Any, unit: str, *, stated: bool = False) -> Any:
    """A point in time: a number in the unit that the column's name has, or in `unit`.

    Unless `unit` was `stated`, the size of a present-day Unix time tells its unit by itself.
    Texts may be times of ISO 8601 too.
    """
    named = unit_in(column.get_name())
    known = nanoseconds(column, named or unit)
    if not stated and named is None:
        number: Any = column.try_cast("float64")
        since, until = (second * NANOSECONDS["s"] for second in _PRESENT_DAY)
        known = sql.cases(
            *(
                (number.between(since / size, until / size), nanoseconds(column, one))
                for one, size in NANOSECONDS.items()
            ),
            else_=known,
        )
    if not column.type().is_string():
        return known
    # Of numbers, which have neither sign, nothing of ISO 8601 is computed.
    may_be_date: Any = column.contains("-") | column.contains("/")
    return may_be_date.ifelse(sql.coalesce(known, iso_8601(column)), known)


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
    return epoch_ns(time) - offset * NANOSECONDS["s"]


def epoch_ns(time: Any) -> Any:
    """A timestamp as nanoseconds since the Unix epoch; null beyond the years 1678 to 2262."""
    if time.type().timezone is None:
        return _epoch(time.try_cast("timestamp(9)"), "ns")
    # With a time zone the engine's type holds microseconds, and casts show its own zone.
    return nanoseconds(_epoch(time, "us"), "us")


def _epoch(time: Any, unit: str) -> Any:
    return sql.function(f"EPOCH_{unit.upper()}", time)
