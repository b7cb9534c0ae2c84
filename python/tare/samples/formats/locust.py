# SPDX-License-Identifier: Apache-2.0
"""CSV with a start and a response time a request, as Locust users write it, or any other.

The published form is `start_time,response_time` in seconds and milliseconds. Other names for the
two columns, in any order and case, are taken too, and a unit in the name
(`response_time_us`, `Response Time (ms)`) is believed. Further columns are ignored. The user may
name the columns instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.formats.csv_file import ROW, equal_rows, read_text
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.named_columns import from_names
from tare.samples.formats.source import Source
from tare.samples.formats.times import moment_of_text, of_text
from tare.samples.sql import column as sql
from tare.untrusted import listed

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

STARTS = ("start_time", "start", "timestamp", "time", "request_start_time")
ASSUMED = "ms"
TOTALS = "Request Count"
DURATIONS = ("response_time", "responsetime", "latency", "duration", "elapsed", "rtt")


def read(backend: Database, path: Path, options: ImportOptions) -> Source:
    """Reads a CSV file; start times without a unit are in s, response times in ms."""

    table, rejected = read_text(backend, path)
    if options.columns:
        return from_names(
            table, table[ROW], path, options, rejected=rejected, duplicates=equal_rows(table)
        )
    columns = [column for column in table.columns if column != ROW]
    if TOTALS in columns:
        raise InputError(
            f"{path}: has Locust's totals, one row per endpoint; write one row per request:"
            " see 'Locust' in docs/formats/inputs.md"
        )
    duration = _find(columns, DURATIONS)
    if duration is None:
        raise InputError(
            f"{path}:1: no column of response times among {listed(columns)};"
            " expected the header start_time,response_time, or --columns start=...,duration=..."
        )
    name, stated = duration
    unit = stated or options.unit
    start = _find(columns, STARTS)
    samples = table.select(
        row=table[ROW],
        duration_ns=of_text(table[name], unit or ASSUMED),
        ok=sql.literal(True),
        **(
            {"start_ns": moment_of_text(table[start[0]], start[1] or options.unit or "s")}
            if start
            else {}
        ),
    )
    duplicates = equal_rows(table) if start else 0
    return Source(samples, rejected, duplicates, assumed_unit=None if unit else ASSUMED)


def _find(columns: list[str], names: tuple[str, ...]) -> tuple[str, str | None] | None:
    """The first column of one of these names, and the unit at the name's end, if it has a unit."""
    for column in columns:
        words = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")
        stem, _, last = words.rpartition("_")
        if words in names:
            return column, None
        if stem in names and last in ("s", "ms", "us", "ns"):
            return column, last
    return None
