# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC, stream or file, with columns of the samples table or those that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.formats.columns import from_columns, units_of
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.source import Source
from tare.samples.sql.engine import first_line
from tare.samples.sql.table import fresh_name

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.sql.table import Database


def read(backend: Database, path: Path, options: ImportOptions) -> Source:
    """Reads what is whole of the file: a stream whose writer was killed ends in half a batch."""
    import duckdb
    import pyarrow as pa

    table, cut_short = _read(path)
    # The engine has no type for columns that are null throughout, and they say nothing.
    empty = [field.name for field in table.schema if pa.types.is_null(field.type)]
    units = units_of(table.schema)
    try:
        table.validate(full=True)
        table = table.drop_columns(empty)
        for at, field in enumerate(table.schema):
            if field.name in units:
                table = table.set_column(at, field.name, table.column(at).cast(pa.int64()))
        stored = backend.create_table(fresh_name("arrow"), table, temp=True)
    except (pa.ArrowException, duckdb.Error) as error:
        types = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise InputError(
            f"{path}: cannot be read as a table ({types}): {first_line(error)};"
            " expected columns of tables/samples.toml, or --columns that name others"
        ) from error
    notes = ("the file ends in the middle of a batch: its writer was stopped",) if cut_short else ()
    return from_columns(stored, path, options, notes, units)


def _read(path: Path) -> tuple[pa.Table, bool]:
    import pyarrow as pa

    # Not mapped: its owner could change what was checked, or truncate it, which ends its reader.
    with pa.BufferReader(pa.py_buffer(path.read_bytes())) as file:
        try:
            if file.size() >= 6 and file.read(6) == b"ARROW1":
                return pa.ipc.open_file(file).read_all(), False
            file.seek(0)
            reader = pa.ipc.open_stream(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path}: not an Arrow stream or file: {error}") from error
        batches, cut_short = [], False
        while True:
            try:
                batches.append(reader.read_next_batch())
            except StopIteration:
                break
            except (pa.ArrowInvalid, OSError):
                cut_short = True
                break
        return pa.Table.from_batches(batches, reader.schema), cut_short
