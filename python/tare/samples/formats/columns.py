# SPDX-License-Identifier: Apache-2.0
"""Files that already have columns of the samples table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.named_columns import check_duration, from_names, outcome
from tare.samples.formats.source import Source
from tare.samples.formats.span_names import plain, separated, ungrouped
from tare.samples.formats.times import nanoseconds
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows
from tare.tables import table as declared
from tare.untrusted import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.sql.table import Table

_TYPES = {"category": "string"}
ATTRIBUTES = "attributes"


_NONE: Mapping[str, str] = MappingProxyType({})


def units_of(schema: pa.Schema) -> dict[str, str]:
    """The unit of each column whose type is a duration."""
    import pyarrow as pa

    return {field.name: field.type.unit for field in schema if pa.types.is_duration(field.type)}


def from_columns(
    stored: Table,
    path: Path,
    options: ImportOptions,
    notes: tuple[str, ...] = (),
    units: Mapping[str, str] = _NONE,
) -> Source:
    """A source from a stored table: known columns cast to their declared types, others left.

    Where the user names columns, those count. `units` are those of columns that are durations,
    stored as numbers. Raises InputError if spans are to be separated by an attribute, and no
    attributes were kept.
    """

    if options.columns:
        return from_names(stored, stored.rowid(), path, options, notes=notes, units=units)
    if options.unit:
        raise InputError(f"{path}: its columns end in their unit; --unit goes with --columns")
    if "duration_ns" not in stored.columns:
        raise InputError(
            f"{path}: no column duration_ns among {listed(stored.columns)};"
            " expected columns of tables/samples.toml, or --columns start=...,duration=..."
        )
    check_duration(stored["duration_ns"], path)
    columns: dict[str, Any] = {
        column.name: stored[column.name].try_cast(_TYPES.get(column.type, column.type))
        for column in declared("samples").columns
        if column.name in stored.columns and column.name != ATTRIBUTES
    }
    if "duration_ns" in units:
        columns["duration_ns"] = nanoseconds(stored.duration_ns, units["duration_ns"])
    columns |= outcome(columns.get("ok", sql.literal(True)), columns["duration_ns"])
    lacking = None
    if options.group_by is not None:
        if not {"span", ATTRIBUTES} <= set(stored.columns):
            raise InputError(
                f"{path}: --group-by: no column {ATTRIBUTES}; name the attribute when the spans are"
                f" received: --attribute {shlex.quote(options.group_by)}"
            )
        kept = stored[ATTRIBUTES].cast("string").try_cast("json")
        group = plain(kept[options.group_by])
        columns["span"] = separated(columns["span"], group)
        known = stored.select(key=sql.function("JSON_KEYS", kept).unnest())
        lacking = ungrouped(options.group_by, stored, group, known)
    duplicates = 0
    if "start_ns" in columns:
        duplicates = count_rows(stored) - count_rows(stored.distinct())
    samples: Any = stored.select(row=stored.rowid(), **columns)
    if "source" in columns:
        # What `tare log export` writes of single moments is no sample.
        samples = samples.filter((samples.source != "event").fill_null(True))
    return Source(samples, duplicates=duplicates, notes=notes, ungrouped=lacking)
