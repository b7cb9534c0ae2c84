# SPDX-License-Identifier: Apache-2.0
"""Which rows are requests, and which of these took no time: the same wherever samples come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tare.samples.sql.engine import rows_of

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

# A day in ns: what is longer is a time of day, or in another unit.
LONGEST = 86_400 * 10**9
# A time in ns that is none; before it, sums and differences stay within 64 bits.
LATEST = 2**62


def usable(rows: Table, unanswered: Any) -> Any:
    """Which rows have the times that a request needs; an `unanswered` row has no duration.

    `rows` has `duration_ns`, and `start_ns` and `intended_ns` where these are known.
    """
    timed = "start_ns" in rows.columns
    good: Any = rows.duration_ns.between(0, LONGEST).fill_null(unanswered)
    if timed:
        start: Any = rows.start_ns.cast("int64")
        good = good & start.between(-LATEST, LATEST).fill_null(unanswered)
    if "intended_ns" in rows.columns:
        intended: Any = rows.intended_ns.cast("int64")
        # What starts before it was intended to has a clock that jumped, and no response time; what
        # starts more than a day later has none that can be meant.
        not_late: Any = intended.between(-LATEST, LATEST)
        if timed:
            waited: Any = rows.start_ns.cast("float64") - intended.cast("float64")
            not_late = not_late & (intended <= start) & (waited <= LONGEST)
        good = good & not_late.fill_null(intended.isnull() | unanswered)
    return good


def too_many_lost(lost: float, limit: float) -> str | None:
    """Why a run does not count of whose source the share `lost` is no requests; None if it does."""
    return (
        f"{lost:.2%} of the rows have no usable time, above {limit:.2%}" if lost > limit else None
    )


def lost_share(lost: int, rows: int) -> float:
    """The share of a source's `rows` that are no requests; one row alone is where it broke off."""
    return lost / rows if lost > 1 else 0.0


def zeros(samples: Table) -> dict[tuple[int, str], int]:
    """How many successful requests of each run and span took no time; those without are absent."""
    ok: Any = samples.ok
    rows = samples.filter(ok & (samples.latency_ns == 0)).group_by(["run", "span"])
    found = rows_of(rows.aggregate(zeros=lambda table: table.count()))
    return {(row["run"], row["span"]): row["zeros"] for row in found}
