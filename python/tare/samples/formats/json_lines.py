# SPDX-License-Identifier: Apache-2.0
"""Formats of one JSON object a line, in files that have none of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import NoRequestsError
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Table


def require(found: Table, broken: int, path: Path, what: str) -> None:
    """Raises NoRequestsError where nothing was found; `broken` lines are no JSON by themselves."""
    if count_rows(found.limit(1)):
        return
    laid_out = f"; {broken:,} lines are not JSON, expected one object per line: see jq -c ."
    raise NoRequestsError(f"{path}: no {what} in it{laid_out if broken else ''}")
