# SPDX-License-Identifier: Apache-2.0
"""The one place that chooses the engine: DuckDB in memory, spoken to through Ibis."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tare.samples.spill import spill_folder

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table

MEMORY = "1GiB"
"""What the engine holds at once; more is on disk. Its readers need about as much again."""


def connect() -> Backend:
    """A fresh engine that keeps the order of rows and spills to disk when memory is short."""
    import ibis

    backend: Backend = ibis.duckdb.connect()
    backend.raw_sql("SET enable_progress_bar = false")
    backend.raw_sql(f"SET memory_limit = '{MEMORY}'")
    # Made when it is needed, and removed with the engine.
    spill = spill_folder(Path(tempfile.gettempdir())) / uuid4().hex
    backend.raw_sql(f"SET temp_directory = {quoted(spill)}")
    return backend


def exactly(path: Path) -> str:
    """The path for the engine, which takes names as patterns: this one matches the file alone."""
    return re.sub(r"([*?[])", r"[\1]", str(path.absolute()))


def quoted(text: object) -> str:
    """A text of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def first_line(error: Exception) -> str:
    """What an engine's error says, without the query that it points at, or the call from Python."""
    text = re.sub(r"^An error occurred while calling .*\n: ", "", str(error))
    return text.strip().partition("\n")[0]


def store(backend: Backend, kind: str, table: Table) -> Table:
    """The rows of `table` as a table of the engine's own, whose name begins with `kind`.

    In one statement, in half the time of Ibis's `create_table`. Raises duckdb.Error.
    """
    import ibis

    name = ibis.util.gen_name(kind)
    backend.raw_sql(f"CREATE TEMP TABLE {name} AS {backend.compile(table)}")
    return backend.table(name)


def count_rows(table: Table) -> int:
    """How many rows a table has."""
    return int(table.count().to_pyarrow().as_py())


def latency(samples: Table) -> ir.IntegerColumn:
    """Response time in ns: from the intended start where there is one, else the duration."""
    import ibis

    duration: Any = samples.duration_ns
    if "intended_ns" not in samples.columns or "start_ns" not in samples.columns:
        return duration
    # A column that is null throughout may have been stored without a type.
    waited: Any = samples.start_ns.cast("int64") - samples.intended_ns.cast("int64")
    return duration + ibis.coalesce(waited, 0)
