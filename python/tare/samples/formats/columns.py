# SPDX-License-Identifier: Apache-2.0
"""Files that already have columns of the samples table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.asked import Asked
from tare.samples.formats.named_columns import from_names, outcome
from tare.samples.formats.source import Source
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows
from tare.tables import table as declared
from tare.untrusted import listed

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

_TYPES = {"category": "string"}


def from_columns(stored: Table, path: Path, asked: Asked, notes: tuple[str, ...] = ()) -> Source:
    """A source from a stored table: known columns cast to their declared types, others left.

    Where the user names columns, those count.
    """

    if asked.columns:
        return from_names(stored, stored.rowid(), path, asked, notes=notes)
    if asked.unit:
        raise InputError(f"{path}: its columns end in their unit; --unit goes with --columns")
    if "duration_ns" not in stored.columns:
        raise InputError(
            f"{path}: no column duration_ns among {listed(stored.columns)};"
            " expected columns of tables/samples.toml, or --columns start=...,duration=..."
        )
    columns: dict[str, Any] = {
        column.name: stored[column.name].try_cast(_TYPES.get(column.type, column.type))
        for column in declared("samples").columns
        if column.name in stored.columns
    }
    columns |= outcome(columns.get("ok", sql.literal(True)), columns["duration_ns"])
    duplicates = 0
    if "start_ns" in columns:
        duplicates = count_rows(stored) - count_rows(stored.distinct())
    samples: Any = stored.select(row=stored.rowid(), **columns)
    if "source" in columns:
        # What `tare log export` writes of single moments is no sample.
        samples = samples.filter((samples.source != "event").fill_null(True))
    return Source(samples, duplicates=duplicates, notes=notes)
