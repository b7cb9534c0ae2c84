# SPDX-License-Identifier: Apache-2.0
"""DuckDB in this process: the engine unless another is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tare.samples.sql import engine

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table


def connect(_url: str) -> Database:
    """A fresh engine in memory: `tare.samples.sql.engine`."""
    return engine.connect()


def read_parquet(backend: Database, files: Sequence[Path]) -> Table:
    """Files in Hive folders, whose names are columns of text."""
    table: Table = backend.read_parquet(
        [engine.exactly(file) for file in files],
        hive_partitioning=True,
        hive_types_autocast=False,
        union_by_name=True,
    )
    return table
