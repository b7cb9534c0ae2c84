# SPDX-License-Identifier: Apache-2.0
"""The one place that chooses the engine: DuckDB in memory, spoken to through Ibis."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table

MEMORY = "1GiB"
"""What the engine holds at once; more is on disk. Its readers need about as much again."""


_SPILL = "tare-spill"
_DAY = 86_400


def connect() -> Backend:
    """A fresh engine that keeps the order of rows and spills to disk when memory is short."""
    import ibis

    backend: Backend = ibis.duckdb.connect()
    backend.raw_sql("SET enable_progress_bar = false")
    backend.raw_sql(f"SET memory_limit = '{MEMORY}'")
    backend.raw_sql(f"SET temp_directory = {quoted(_spill(Path(tempfile.gettempdir())))}")
    return backend


def _spill(folder: Path) -> Path:
    """A folder that is made when it is needed and removed with the engine, or else by the next.

    The process may be another container's, whose number says nothing: its folder is still changing.
    """
    for left in folder.glob(f"{_SPILL}-*-*"):
        with suppress(OSError):
            gone = not Path(
                "/proc", left.name.removeprefix(f"{_SPILL}-").partition("-")[0]
            ).exists()
            if gone and time.time() - left.stat().st_mtime > _DAY:
                shutil.rmtree(left)
    return folder / f"{_SPILL}-{os.getpid()}-{uuid4().hex}"


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
