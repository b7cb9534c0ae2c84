# SPDX-License-Identifier: Apache-2.0
"""A table of a result whose columns have the declared kinds, and whose readings are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.tables import table as declared

if TYPE_CHECKING:
    from tare.samples.sql.column import Kind
    from tare.samples.sql.table import Table

NEEDED = {
    "samples": ("duration_ns",),
    "machine": ("slice", "duration_ns", "subject", "metric", "value"),
    "costs": ("layer", "metric", "count"),
}
SIGNED = ("clock_offset",)
"""Metrics of `machine` that can be negative."""
MOST = 2**62
MOST_SLICES = 10_000_000
"""More than a day of load; memory is taken for each."""


def checked(table: Table, name: str, where: str) -> Table:
    """The table without readings that are negative, not finite, or too large to be any.

    Rows of `samples` all stay: `samples.usable` counts those that are lost. Raises InputError where
    a column is missing, or has another kind of values than is declared.
    """
    types = table.schema()
    if missing := [column for column in NEEDED[name] if column not in types]:
        raise InputError(f"{where}: no column {', '.join(missing)}; these are not {name} of Tare")
    for column in declared(name).columns:
        kind = types.get(column.name)
        if kind is not None and not _fits(kind, column.type):
            raise InputError(f"{where}: column {column.name} is {kind}, expected {column.type}")
    if name == "machine":
        is_signed: Any = table.metric.cast("string").isin(SIGNED)
        value: Any = table.value.between(0, MOST) | (table.value.between(-MOST, 0) & is_signed)
        sound: Any = value & table.duration_ns.between(0, MOST)
        return table.filter(
            sound & (table.slice.isnull() | table.slice.between(0, MOST_SLICES - 1))
        )
    if name == "costs":
        table = table.filter(table["count"].between(0, MOST))
        if {"low_ns", "high_ns"} <= {*table.columns}:
            low: Any = table.low_ns
            return table.filter(
                low.isnull() | (low.between(0, MOST) & table.high_ns.between(low, MOST))
            )
    return table


def _fits(kind: Kind, wanted: str) -> bool:
    if kind.is_null() or kind.is_unknown():  # a column of nulls, stored without a type
        return True
    if wanted in ("category", "string"):
        return bool(kind.is_string())
    if wanted == "bool":
        return bool(kind.is_boolean())
    return bool(kind.is_numeric() if wanted == "float64" else kind.is_integer())
