# SPDX-License-Identifier: Apache-2.0
"""The data schemas of `tables/*.toml`, read by Rust (`crates/tables`) and Python alike."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_PACKAGED = Path(__file__).parent / "_tables"
_CLONE = Path(__file__).parents[2] / "tables"


@dataclass(frozen=True)
class Column:
    """One column: `type` is bool, int32, int64, float64, string or category."""

    name: str
    type: str
    description: str
    unit: str | None = None


@dataclass(frozen=True)
class Table:
    """One table and its columns, in their order."""

    name: str
    description: str
    columns: tuple[Column, ...]


@cache
def table(name: str) -> Table:
    """The declaration of one table: `samples`, `machine`, `events`, `costs` or `edges`."""
    folder = _PACKAGED if _PACKAGED.is_dir() else _CLONE
    declared = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    columns = tuple(Column(**column) for column in declared["columns"])
    return Table(declared["name"], declared["description"], columns)


def arrow_schema(name: str) -> "pa.Schema":
    """The Arrow schema of one table; a category is a dictionary of int32 and utf8."""
    import pyarrow as pa

    types = {
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "string": pa.string(),
        "category": pa.dictionary(pa.int32(), pa.string()),
    }
    return pa.schema([(column.name, types[column.type]) for column in table(name).columns])
