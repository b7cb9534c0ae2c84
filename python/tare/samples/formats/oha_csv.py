# SPDX-License-Identifier: Apache-2.0
"""oha's CSV output (`oha --output-format csv`): a row an answered request, in s."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import ROW, equal_rows, read_text
from tare.samples.formats.source import Source
from tare.samples.formats.times import nanoseconds

if TYPE_CHECKING:
    from tare.samples.sql.table import Database


def read(backend: Database, path: Path) -> Source:
    """Reads request-start (since the run began), request-duration, status and bytes."""
    table, rejected = read_text(backend, path)
    missing = {"request-start", "request-duration", "status"} - set(table.columns)
    if missing:
        raise InputError(f"{path}:1: no column {' or '.join(sorted(missing))}; expected oha's CSV")
    status: Any = table.status.try_cast("int32").fill_null(0)
    columns = {"bytes": table.bytes.try_cast("int64")} if "bytes" in table.columns else {}
    samples = table.select(
        row=table[ROW],
        start_ns=nanoseconds(table["request-start"], "s"),
        duration_ns=nanoseconds(table["request-duration"], "s"),
        status=status,
        ok=status.between(1, 399),
        **columns,
    )
    note = "oha lists no request that had no answer: its JSON counts them"
    return Source(samples, rejected, equal_rows(table), since_start=True, notes=(note,))
