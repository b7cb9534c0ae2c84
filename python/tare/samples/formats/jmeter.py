# SPDX-License-Identifier: Apache-2.0
"""JMeter's result file (JTL) as CSV with a header: start and elapsed time in whole ms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import ROW, equal_rows, read_text
from tare.samples.formats.source import Source
from tare.samples.formats.times import nanoseconds

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table


def read(backend: Backend, path: Path) -> Source:
    """Reads timeStamp and elapsed, and where they exist success, responseCode and bytes."""
    table, rejected = read_text(backend, path)
    missing = {"timeStamp", "elapsed"} - set(table.columns)
    if missing:
        raise InputError(
            f"{path}:1: no column {' or '.join(sorted(missing))}; expected a JTL file in CSV form"
            " with its header (jmeter.save.saveservice.print_field_names=true)"
        )
    return from_fields(table, rejected, equal_rows(table))


def from_fields(
    table: Table, rejected: int, duplicates: int, notes: tuple[str, ...] = ()
) -> Source:
    """A source from JMeter's fields as texts under the names of its CSV, and `ROW`."""
    import ibis

    columns: dict[str, Any] = {"ok": ibis.literal(True)}
    if "success" in table.columns:
        columns["ok"] = (table.success.lower() == "true").fill_null(False)
    if "responseCode" in table.columns:
        columns["status"] = table.responseCode.try_cast("int32").fill_null(0)
    if "bytes" in table.columns:
        columns["bytes"] = table.bytes.try_cast("int64")
    samples = table.select(
        row=table[ROW],
        start_ns=nanoseconds(table.timeStamp, "ms"),
        duration_ns=nanoseconds(table.elapsed, "ms"),
        **columns,
    )
    note = "JMeter rounds to whole milliseconds: smaller differences cannot be seen"
    return Source(samples, rejected, duplicates, notes=(note, *notes))
