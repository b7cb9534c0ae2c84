# SPDX-License-Identifier: Apache-2.0
"""Parquet with columns of the samples table or those that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.formats.columns import from_columns, units_of
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.source import Source
from tare.samples.sql.engine import exactly, first_line, store

if TYPE_CHECKING:
    from tare.samples.sql.table import Database


def read(backend: Database, path: Path, options: ImportOptions) -> Source:
    """Reads one Parquet file."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        units = units_of(pq.read_schema(path))
        lazy = backend.read_parquet(exactly(path))
        stored = store(backend, "parquet", lazy)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a Parquet file: {first_line(error)}") from error
    return from_columns(stored, path, options, units=units)
