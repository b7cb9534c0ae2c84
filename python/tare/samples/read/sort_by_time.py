# SPDX-License-Identifier: Apache-2.0
"""From a file as it stands to requests in time order; everything done on the way is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tare.errors import InputError, NoRequestsError
from tare.samples.describe.span_tree import IDS
from tare.samples.describe.usable_rows import LONGEST, lost_share, usable
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows, first_line, latency, store

if TYPE_CHECKING:
    from tare.samples.formats.source import Source
    from tare.samples.sql.table import Database, Table

SHOWN = 3
LOOKED_AT = 1_000
SECOND = 1_000_000_000
TWICE = 2
MOST_PARTS = 1_000
SOME = 10


@dataclass(frozen=True)
class Requests:
    """One file's requests: `table` has `place` (0, 1 ... in time order) and `latency_ns`.

    The requests of each span have places of their own.
    `row` keeps the place in the file, for what must see the file as it was written.
    """

    table: Table
    timed: bool
    warnings: tuple[str, ...]
    since_start: bool = False
    """Whether its times count from the beginning of the run, not of 1970."""
    lost: float = 0.0
    """The share of its rows that are no requests: they are left out."""
    stepped: str | None = None
    """How far its clock was set back on the way: what such times say is not known."""
    ungrouped: str | None = None
    assumed_unit: str | None = None
    """As in its `Source`, like `ungrouped`."""


def tidy(backend: Database, source: Source, name: str) -> Requests:
    """Leaves out rows that cannot be read, sorts the others by start, counts what was odd.

    Duplicates stay: equal rows may be equal requests, and leaving them out would be a choice.
    Raises NoRequestsError when no row is left, InputError for a file that cannot be read.
    """
    import duckdb

    read = source.samples.tables()
    try:
        raw = store(backend, "raw", source.samples)
    except duckdb.Error as error:
        raise InputError(f"{name}: cannot be read: {first_line(error)}") from error
    # What was read from the file is needed no more, and may be many times what is kept.
    for table_name in read:
        backend.drop_table(table_name)
    timed = "start_ns" in raw.columns
    good = usable(raw, raw.unanswered if "unanswered" in raw.columns else sql.literal(False))
    warnings = [*source.notes, *filter(None, [source.ungrouped])]
    bad = raw.filter(~good).order_by("row")
    timed_alone = timed and "span" not in raw.columns
    counted = _counted(raw.mutate(good=good), timed_alone)
    every, rows = (int(counted[name] or 0) for name in ("rows", "good"))
    in_order = timed_alone and every == rows and _in_order(counted)
    unreadable = every - rows + source.rejected
    if unreadable:
        places = _places(bad)
        where = f" (place {places})" if places else ""
        warnings.append(f"{_rows(unreadable)} without a usable time{where}: left out")
    table = raw.filter(good).drop([column for column in ("unanswered",) if column in raw.columns])
    if rows == 0:
        long = count_rows(bad.filter(bad.duration_ns > LONGEST))
        hint = ": their durations are above a day; check columns and unit" if long else ""
        raise NoRequestsError(f"{name}: no request could be read from {_rows(unreadable)}{hint}")
    traced = set(table.columns) >= IDS
    if traced:
        table, repeated = _without_resent_spans(backend, table, rows)
        if repeated:
            warnings.append(f"{_rows(repeated)} equal to an earlier one with its id: left out")
    stepped = None
    # Tracers send and store spans in any order.
    if timed and not in_order and not traced:
        disorder, stepped = _disorder(table)
        warnings.extend(disorder)
    if source.duplicates:
        warnings.append(f"{_rows(source.duplicates)} equal to an earlier one in every field: kept")
    placed = table.mutate(latency_ns=latency(table))
    if in_order:
        placed = placed.mutate(place=placed.row - counted["first"])
    else:
        order = ["start_ns", "row"] if timed else ["row"]
        spans = ["span"] if "span" in table.columns else None
        number: Any = sql.row_number().over(group_by=spans, order_by=order)
        placed = placed.mutate(place=number).order_by(order)
    stored = store(backend, "requests", placed)
    for table_name in filter(None, (raw.get_name(), table.get_name())):
        backend.drop_table(table_name)
    told = tuple(f"{name}: {warning}" for warning in warnings)
    lost = lost_share(unreadable, unreadable + rows)
    return Requests(
        stored,
        timed,
        told,
        source.since_start,
        lost,
        stepped,
        source.ungrouped,
        source.assumed_unit,
    )


def _without_resent_spans(backend: Database, spans: Table, rows: int) -> tuple[Table, int]:
    """The spans without copies, and the number of copies.

    Equal spans with the same id are one span that an exporter sent twice.
    """
    same = ["trace_id", "span_id", "span", "start_ns", "duration_ns"]
    number: Any = sql.row_number().over(group_by=same, order_by="row")
    marked = spans.mutate(again=number)
    has_id: Any = marked.trace_id.notnull() & marked.span_id.notnull()
    first = store(backend, "spans", marked.filter((marked.again == 0) | ~has_id).drop("again"))
    return first, rows - count_rows(first)


def _counted(raw: Table, timed: bool) -> dict[str, Any]:
    """The numbers of rows and of `good` rows; of `timed` rows also the first and the last row, and
    how many rows follow the row before by number and by start."""
    more: dict[str, Any] = {}
    if timed:
        number, start = raw.row, raw.start_ns
        window = sql.window()
        follows: Any = (number > number.lag().over(window)) & (start >= start.lag().over(window))
        raw = raw.mutate(follows=follows.cast("int64"))
        more = {"first": raw.row.min(), "last": raw.row.max(), "following": raw.follows.sum()}
    (found,) = raw.aggregate(rows=raw.count(), good=raw.good.cast("int64").sum(), **more).rows()
    return found


def _in_order(counted: Mapping[str, Any]) -> bool:
    """Whether rows are numbered without gaps and in the order of their starts: what is in order
    needs no sort, which takes as long as reading a file."""
    rows, following = counted["rows"], counted["following"] or 0
    return bool(rows == following + 1 == counted["last"] - counted["first"] + 1)


def _disorder(table: Table) -> tuple[list[str], str | None]:
    """Rows later than the row that follows them, and whether a clock was set back.

    Loads of several users are written when a request ends, and are in order by their ends; a file
    is out of order only as far as it is neither by starts nor by ends.
    """

    # Spans of one trace stand together, each kind in its own order.
    window = sql.window(group_by=["span"] if "span" in table.columns else [], order_by="row")
    start: Any = table.start_ns
    end: Any = table.start_ns + table.duration_ns
    marked = table.mutate(
        by_start=(start > start.lead().over(window)).fill_null(False),
        by_end=(end > end.lead().over(window)).fill_null(False),
    )
    (counts,) = marked.aggregate(start=marked.by_start.sum(), end=marked.by_end.sum()).rows()
    by_start, by_end = (int(counts[name] or 0) for name in ("start", "end"))
    displaced = min(by_start, by_end)
    if not displaced:
        return [], None
    chosen: Any = marked.by_start if by_start <= by_end else marked.by_end
    rows = marked.filter(chosen).order_by("row")
    told = f"{_rows(displaced)} out of time order (place {_places(rows)}): sorted by start time"
    return [told], _stepped(marked.filter(~chosen))


def _stepped(others: Table) -> str | None:
    """How far a clock was set back, seen without rows that were out of order; None for not at all.

    A row that was written late is in order with it gone; after a clock was set back all rows that
    follow are early. By less than a second, or ten times the longest request, several users'
    requests may be apart. What falls back more than twice may be sorted by something else than
    time, which is no fault: then its parts go over the same time, or are of a few rows.
    """
    by = ["span"] if "span" in others.columns else []
    window = sql.window(group_by=by, order_by="row")
    start: Any = others.start_ns
    (most_row,) = others.aggregate(most=others.duration_ns.max()).rows()
    longest = int(most_row["most"] or 0)
    back: Any = start.lag().over(window) - start
    marked = others.mutate(back=back)
    fallen = marked.mutate(fell=(marked.back > max(SECOND, 10 * longest)).fill_null(False))
    parts = fallen.mutate(of_rows=fallen.fell.cast("int64").cumsum(group_by=by, order_by="row"))
    found = (
        parts.group_by([*by, "of_rows"])
        .aggregate(
            first=parts.start_ns.min(),
            last=parts.start_ns.max(),
            rows=parts.count(),
            back=parts.back.max(where=parts.fell),
            at=parts.row.min(),
        )
        .order_by([*by, "at"])
        .limit(MOST_PARTS + 1)
        .rows()
    )
    falls = [(before, after) for before, after in pairwise(found) if after["back"] is not None]
    if not falls or len(found) > MOST_PARTS:
        return None
    apart = sum(_apart(before, after) for before, after in falls)
    if len(falls) > TWICE and 2 * apart <= len(falls):
        return None
    most = f"{max(after['back'] for _, after in falls) / SECOND:,.0f} s"
    return f"its clock was set back by {most} on the way, or it contains two recordings"


def _apart(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two parts of some rows have less than half of the shorter part's time in common."""
    common = min(before["last"], after["last"]) - max(before["first"], after["first"])
    shorter = min(part["last"] - part["first"] for part in (before, after))
    return bool(min(before["rows"], after["rows"]) >= SOME and 2 * common < shorter)


def _places(rows: Table) -> str:
    """The first rows' numbers as people count them, from 1, and their step if it is constant."""
    numbers = [int(row) + 1 for row in rows.select("row").limit(LOOKED_AT).arrays()["row"].tolist()]
    shown = ", ".join(str(number) for number in numbers[:SHOWN])
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > SHOWN:
        shown += " …"
    if len(steps) == 1 and len(numbers) > 2 and steps != {1}:
        shown += f", every {steps.pop()}th"
    return shown


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
