# SPDX-License-Identifier: Apache-2.0
"""Tables whose columns the user names: CSV as text, Parquet and Arrow with types of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import ROW
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.source import Source
from tare.samples.formats.times import bounded, epoch_ns, moment, nanoseconds, unit_in
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

_YES = ("true", "t", "yes", "y", "1", "ok", "success", "succeeded", "pass", "passed")
_NO = ("false", "f", "no", "n", "0", "ko", "failure", "failed", "fail", "error")


def from_names(
    stored: Table,
    row: Any,
    path: Path,
    options: ImportOptions,
    *,
    rejected: int = 0,
    duplicates: int = 0,
    notes: tuple[str, ...] = (),
    units: Mapping[str, str] = MappingProxyType({}),
) -> Source:
    """A source from a stored table, whose rows `row` numbers, and the columns `options` names.

    Times are timestamps, or numbers whose unit is in `units` or in the column's name, or is
    `options.unit`; the size of a present-day Unix time tells its unit by itself.
    """

    for role, name in options.columns.items():
        if name not in stored.columns:
            known = ", ".join(column for column in stored.columns if column != ROW)
            raise InputError(f"{path}: {role}: found column '{name}', expected one of {known}")
    of = {role: stored[name] for role, name in options.columns.items()}
    columns: dict[str, Any] = {
        f"{role}_ns": _time(of[role], role, path, options)
        for role in ("start", "intended", "end")
        if role in of
    }
    if "duration" in of:
        columns["duration_ns"] = _duration(of["duration"], path, options, units)
        columns.pop("end_ns", None)
    else:
        columns["duration_ns"] = bounded(columns.pop("end_ns")) - bounded(columns["start_ns"])
    ok: Any = sql.literal(True)
    if "status" in of:
        columns["status"] = of["status"].try_cast("int32")
        ok = columns["status"].between(1, 399)
    if "ok" in of:
        ok, odd, more = _ok(of["ok"], stored, path)
        columns["duration_ns"] = odd.ifelse(sql.null("int64"), columns["duration_ns"])
        notes = (*notes, *more)
    columns |= outcome(ok, columns["duration_ns"])
    if "error" in of:
        columns["error"] = of["error"].cast("string").nullif("")
    if "bytes" in of:
        columns["bytes"] = of["bytes"].try_cast("int64")
    columns |= {role: of[role].cast("string") for role in ("span", "condition") if role in of}
    return Source(stored.select(row=row, **columns), rejected, duplicates, notes=notes)


def _unit(column: Any, path: Path, options: ImportOptions) -> str:
    unit = unit_in(column.get_name()) or options.unit
    if unit is None:
        raise InputError(f"{path}: no unit of column '{column.get_name()}'; add --unit ns|us|ms|s")
    return unit


def _duration(column: Any, path: Path, options: ImportOptions, units: Mapping[str, str]) -> Any:
    check_duration(column, path)
    return nanoseconds(column, units.get(column.get_name()) or _unit(column, path, options))


def check_duration(column: Any, path: Path) -> None:
    """Raises InputError unless the column has numbers, or texts, which may be numbers."""
    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()):
        raise InputError(
            f"{path}: column '{column.get_name()}' has the type {kind};"
            " expected a number for duration"
        )


def _time(column: Any, role: str, path: Path, options: ImportOptions) -> Any:
    kind = column.type()
    if kind.is_timestamp():
        return epoch_ns(column)
    if kind.is_numeric() or kind.is_string():
        # Without a duration, times are all that the user's unit can be for.
        stated = "duration" not in options.columns
        return moment(column, _unit(column, path, options), stated=stated)
    raise InputError(
        f"{path}: column '{column.get_name()}' has the type {kind}; expected a time for {role}"
    )


def outcome(ok: Any, duration: Any) -> dict[str, Any]:
    """`ok` and `unanswered` of a source from what a file says, where null is not a word."""
    return {
        "ok": ok.fill_null(False),
        "unanswered": (~ok & duration.isnull()).fill_null(False),
    }


def _ok(column: Any, stored: Table, path: Path) -> tuple[Any, Any, tuple[str, ...]]:
    """Whether requests succeeded, which rows have another word, and a note on those.

    A column in which such words are the rule is another column than the user meant.
    """

    name = column.get_name()
    text: Any = column.cast("string").strip().lower().nullif("")
    ok: Any = sql.cases((text.isin(_YES), True), (text.isin(_NO), False))
    odd: Any = text.notnull() & ok.isnull()
    strange = stored.filter(odd)
    count = count_rows(strange)
    if not count:
        return ok, odd, ()
    found = strange.select(column).limit(1).rows()[0][name]
    if 2 * count >= count_rows(stored):
        raise InputError(f"{path}: column '{name}' has '{found}'; expected true or false")
    note = f"column '{name}' has '{found}' and others, neither true nor false, {count:,} times"
    return ok, odd, (note,)
