# SPDX-License-Identifier: Apache-2.0
"""k6's CSV output (`k6 run --out csv=FILE`): its rows of http_req_duration, in ms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError, NoRequestsError
from tare.samples.formats.csv_file import ROW, read_text
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.labels import mixed
from tare.samples.formats.named_columns import from_names
from tare.samples.formats.source import Source
from tare.samples.formats.times import bounded, moment, nanoseconds
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

METRIC = "http_req_duration"
LABELS = ("name", "scenario")
IN_SECONDS = 1e11
APART = "--columns start=timestamp,duration=metric_value,ok=expected_response,span=%s --unit ms"


def read(backend: Database, path: Path, options: ImportOptions) -> Source:
    """Reads the requests; other metrics of the file are not requests and are passed over."""
    table, rejected = read_text(backend, path)
    missing = {"metric_name", "timestamp", "metric_value"} - set(table.columns)
    if missing:
        raise InputError(f"{path}:1: no column {' or '.join(sorted(missing))}; expected k6's CSV")
    table = table.filter(table.metric_name == METRIC)
    if not count_rows(table.limit(1)):
        raise NoRequestsError(f"{path}: no {METRIC} in it; of k6 only HTTP requests are compared")
    if options.columns:
        return from_names(table, table[ROW], path, options, rejected=rejected)
    duration = nanoseconds(table.metric_value, "ms")
    time = moment(table.timestamp, "s")
    # k6 stamps a request at its end; in whole seconds, its default, that is no use for the start.
    coarse: Any = table.timestamp.try_cast("float64") < IN_SECONDS
    start: Any = coarse.fill_null(False).ifelse(time, bounded(time) - bounded(duration))
    names = ("status", "expected_response", "error")
    told = outcome({name: table[name] for name in names if name in table.columns})
    samples = table.select(row=table[ROW], start_ns=start, duration_ns=duration, **told)
    notes = [
        note
        for label in LABELS
        if label in table.columns
        for note in mixed(table, label, f"{APART % label} compares each by itself")
    ]
    # Rows of one second look alike, so equal rows say nothing about duplication.
    return Source(samples, rejected, notes=(*notes,))


def outcome(tags: dict[str, Any]) -> dict[str, Any]:
    """`ok`, `status` and `error` from k6's tags of those names, texts that may be absent."""

    columns: dict[str, Any] = {"ok": sql.literal(True)}
    if "status" in tags:
        columns["status"] = tags["status"].try_cast("int32").fill_null(0)
        columns["ok"] = columns["status"].between(1, 399)
    if "expected_response" in tags:
        stated = tags["expected_response"].nullif("")
        columns["ok"] = sql.coalesce(stated == "true", columns["ok"])
    if "error" in tags:
        columns["error"] = tags["error"].nullif("")
    return columns
