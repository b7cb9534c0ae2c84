# SPDX-License-Identifier: Apache-2.0
"""hey's CSV output (`hey -o csv`): a row an answered request, in s with four decimals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import ROW, read_text
from tare.samples.formats.source import Source
from tare.samples.formats.times import nanoseconds
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

MOST = 1_000_000


def read(backend: Database, path: Path) -> Source:
    """Reads response-time, status-code and offset (the start, since the run began)."""
    table, rejected = read_text(backend, path)
    missing = {"response-time", "status-code", "offset"} - set(table.columns)
    if missing:
        raise InputError(f"{path}:1: no column {' or '.join(sorted(missing))}; expected hey's CSV")
    status: Any = table["status-code"].try_cast("int32").fill_null(0)
    samples = table.select(
        row=table[ROW],
        start_ns=nanoseconds(table.offset, "s"),
        duration_ns=nanoseconds(table["response-time"], "s"),
        status=status,
        ok=status.between(1, 399),
    )
    notes = [
        "hey rounds to 0.1 ms: smaller differences cannot be seen",
        "hey lists no request that had no answer",
    ]
    if count_rows(table) >= MOST:
        notes.append(f"hey lists the first {MOST:,} requests only")
    # Rounded rows look alike, so equal rows say nothing about duplication.
    return Source(samples, rejected, since_start=True, notes=tuple(notes))
