# SPDX-License-Identifier: Apache-2.0
"""Times and durations of any spelling as whole nanoseconds, exactly; null where there is none."""

from __future__ import annotations

from typing import Any

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# Between these a number is a Unix time of the years 2001 to 5138 in the unit.
_SIZES = ((1e9, 1e11, "s"), (1e12, 1e14, "ms"), (1e15, 1e17, "us"), (1e18, 1e20, "ns"))


def nanoseconds(value: Any, unit: str) -> Any:
    """A number, or the text of one, in `unit`, to the nearest nanosecond."""
    value = value.strip() if value.type().is_string() else value
    return (value.try_cast("decimal(38, 15)") * NANOSECONDS[unit]).round().try_cast("int64")


def moment(value: Any, unit: str) -> Any:
    """A point in time: a Unix time, whose size tells its unit, or else a number in `unit`.

    Texts may be times of ISO 8601 too.
    """
    import ibis

    number: Any = value.try_cast("float64")
    known = ibis.cases(
        *((number.between(low, high), nanoseconds(value, size)) for low, high, size in _SIZES),
        else_=nanoseconds(value, unit),
    )
    return ibis.coalesce(known, iso_8601(value)) if value.type().is_string() else known


def iso_8601(text: Any) -> Any:
    """A time such as 2026-01-31T12:00:00.123456789+01:00; without an offset it is UTC."""
    hours: Any = text.re_extract(r":.*([+-]\d\d):?\d\d$", 1).try_cast("int64").fill_null(0)
    minutes: Any = text.re_extract(r":.*[+-]\d\d:?(\d\d)$", 1).try_cast("int64").fill_null(0)
    offset: Any = hours * 3600 + (hours < 0).ifelse(-60, 60) * minutes
    return epoch_ns(text.try_cast("timestamp(9)")) - offset * NANOSECONDS["s"]


def epoch_ns(time: Any) -> Any:
    """A timestamp as nanoseconds since the Unix epoch."""
    import ibis

    @ibis.udf.scalar.builtin(name="epoch_ns", signature=((time.type(),), "int64"))
    def function(time): ...  # type: ignore[no-untyped-def]

    return function(time)
