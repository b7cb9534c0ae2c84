# SPDX-License-Identifier: Apache-2.0
"""The one place that chooses the engine: DuckDB in memory."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tare.errors import InputError
from tare.samples.sql.column import functions_of
from tare.samples.sql.spill import spill_folder

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table

MEMORY = "1GiB"
"""What the engine holds at once; more is on disk. Its readers need about as much again."""


def connect() -> Database:
    """A fresh engine that keeps the order of rows and spills to disk when memory is short."""
    from tare.samples.sql.table import Database

    backend = Database()
    backend.raw_sql("SET enable_progress_bar = false")
    backend.raw_sql(f"SET memory_limit = '{MEMORY}'")
    # Made when it is needed, and removed with the engine.
    spill = spill_folder(Path(tempfile.gettempdir())) / uuid4().hex
    backend.raw_sql(f"SET temp_directory = {quoted(spill)}")
    return backend


def exactly(path: Path) -> str:
    """The path for an engine that takes names as patterns: this pattern matches the file alone.

    Raises InputError if there is no such pattern: in patterns, a backslash ends a name as / does.
    """
    name = str(path.absolute())
    pattern = re.sub(r"([*?[])", r"[\1]", name)
    if "\\" in name and pattern != name:
        raise InputError(f"{path}: has a backslash and one of *?[ in its path; rename it")
    return pattern


def quoted(text: object) -> str:
    """A text of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def of_engine(error: Exception) -> str:
    """The package in which the class of an error is defined."""
    return type(error).__module__.partition(".")[0]


def first_line(error: Exception) -> str:
    """What an engine's error says, without the query that it points at, or the call from Python."""
    text = re.sub(r"^An error occurred while calling .*\n: ", "", str(error))
    return text.strip().partition("\n")[0]


def store(backend: Database, kind: str, table: Table) -> Table:
    """The rows of `table` as a table of the engine's own, whose name begins with `kind`.

    Raises duckdb.Error.
    """
    from tare.samples.sql.table import fresh_name

    return backend.create_table(fresh_name(kind), table)


def release(cached: Table) -> None:
    """Frees what `cache` stored, of any engine."""
    from tare.samples.sql.table import Table as Own

    if isinstance(cached, Own):
        cached.get_backend().drop_table(cached.get_name())
    else:
        cached.release()


def count_rows(table: Table) -> int:
    """How many rows a table has."""
    (row,) = rows_of(table.aggregate(rows=table.count()))
    return int(row["rows"])


def rows_of(table: Table) -> list[dict[str, Any]]:
    """The rows of a table of any engine."""
    from tare.samples.sql.table import Table as Own

    return table.rows() if isinstance(table, Own) else list(table.to_pyarrow().to_pylist())


def arrays_of(table: Table) -> dict[str, Any]:
    """The columns of a table of any engine, without nulls, as NumPy's arrays (n,)."""
    from tare.samples.sql.table import Table as Own

    if isinstance(table, Own):
        return table.arrays()
    found = table.to_pyarrow()
    return {name: found[name].to_numpy() for name in found.column_names}


def latency(samples: Table) -> Any:
    """Response time in ns: from the intended start where there is one, else the duration."""
    duration: Any = samples.duration_ns
    if "intended_ns" not in samples.columns or "start_ns" not in samples.columns:
        return duration
    # A column that is null throughout may have been stored without a type.
    waited: Any = samples.start_ns.cast("int64") - samples.intended_ns.cast("int64")
    return duration + functions_of(samples).coalesce(waited, 0)
