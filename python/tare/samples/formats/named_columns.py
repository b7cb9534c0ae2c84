# SPDX-License-Identifier: Apache-2.0
"""Tables whose columns the user names: CSV as text, Parquet and Arrow with types of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.asked import UNITS, Asked
from tare.samples.formats.source import Source
from tare.samples.formats.times import epoch_ns, moment, nanoseconds

if TYPE_CHECKING:
    from ibis.expr.types import Table

_YES = ("true", "t", "yes", "y", "1", "ok", "success", "succeeded", "pass", "passed")
_NO = ("false", "f", "no", "n", "0", "ko", "failure", "failed", "fail", "error", "")


def from_names(
    stored: Table,
    row: Any,
    path: Path,
    asked: Asked,
    *,
    rejected: int = 0,
    duplicates: int = 0,
    notes: tuple[str, ...] = (),
) -> Source:
    """A source from a stored table and the columns that `asked` names, in its unit; `row` numbers the rows.

    Times are timestamps, or numbers whose unit stands in the column's name or is `asked.unit`;
    the size of a present-day Unix time tells its unit by itself.
    """
    for role, name in asked.columns.items():
        if name not in stored.columns:
            raise InputError(
                f"{path}: no column '{name}' for {role} among {', '.join(stored.columns)}"
            )
    of = {role: stored[name] for role, name in asked.columns.items()}
    columns: dict[str, Any] = {
        f"{role}_ns": _time(of[role], role, path, asked)
        for role in ("start", "intended", "end")
        if role in of
    }
    if "duration" in of:
        columns["duration_ns"] = _duration(of["duration"], path, asked)
        columns.pop("end_ns", None)
    else:
        columns["duration_ns"] = columns.pop("end_ns") - columns["start_ns"]
    columns |= _outcome(of, stored, path)
    columns |= {role: of[role].cast("string") for role in ("span", "condition") if role in of}
    return Source(stored.select(row=row, **columns), rejected, duplicates, notes=notes)


def _unit(column: Any, path: Path, asked: Asked) -> str:
    *_, last = re.split(r"[^a-z0-9]+", column.get_name().lower().strip(" )]"))
    unit = last if last in UNITS else asked.unit
    if unit is None:
        raise InputError(f"{path}: no unit of column '{column.get_name()}'; add --unit ns|us|ms|s")
    return unit


def _duration(column: Any, path: Path, asked: Asked) -> Any:
    kind = column.type()
    if kind.is_numeric() or kind.is_string():
        return nanoseconds(column, _unit(column, path, asked))
    raise InputError(
        f"{path}: column '{column.get_name()}' has the type {kind}; expected a number for duration"
    )


def _time(column: Any, role: str, path: Path, asked: Asked) -> Any:
    kind = column.type()
    if kind.is_timestamp():
        # With a time zone the engine's type holds microseconds, and casts show its own zone.
        return epoch_ns(column.cast("timestamp(9)") if kind.timezone is None else column)
    if kind.is_numeric() or kind.is_string():
        return moment(column, _unit(column, path, asked))
    raise InputError(
        f"{path}: column '{column.get_name()}' has the type {kind}; expected a time for {role}"
    )


def _outcome(of: dict[str, Any], stored: Table, path: Path) -> dict[str, Any]:
    import ibis

    columns: dict[str, Any] = {"ok": ibis.literal(True)}
    if "status" in of:
        columns["status"] = of["status"].try_cast("int32").fill_null(0)
        columns["ok"] = columns["status"].between(1, 399)
    if "ok" in of:
        text: Any = of["ok"].cast("string").strip().lower().fill_null("")
        odd = stored.filter(~text.isin([*_YES, *_NO])).limit(1).to_pyarrow().to_pylist()
        if odd:
            name = of["ok"].get_name()
            raise InputError(
                f"{path}: column '{name}' has '{odd[0][name]}'; expected true or false"
            )
        columns["ok"] = text.isin(_YES)
    if "error" in of:
        columns["error"] = of["error"].cast("string").nullif("")
    if "bytes" in of:
        columns["bytes"] = of["bytes"].try_cast("int64")
    return columns
