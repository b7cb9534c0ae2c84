# SPDX-License-Identifier: Apache-2.0
"""Tables of a result folder, whose paths name condition, block and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.samples.engines import Engine

if TYPE_CHECKING:
    from pathlib import Path

    from tare.samples.sql.table import Database, Table


def read_hive(backend: Database, folder: Path, name: str) -> Table | None:
    """One table of a result folder with condition (string), block and run (int) from its paths."""
    return Engine("duckdb", backend).table(folder, name)
