# SPDX-License-Identifier: Apache-2.0
"""k6's CSV output (`k6 run --out csv=FILE`): its rows of http_req_duration, in ms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import nanoseconds, read_text
from tare.samples.formats.source import Source

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

# A present-day Unix time tells its unit by its size (K6_CSV_TIME_FORMAT).
_UNITS = ((1e11, "s"), (1e14, "ms"), (1e17, "us"))


def read(backend: Backend, path: Path) -> Source:
    """Reads the requests; other metrics of the file are not requests and are passed over."""
    import ibis

    table, rejected, _ = read_text(backend, path)
    missing = {"metric_name", "timestamp", "metric_value"} - set(table.columns)
    if missing:
        raise InputError(f"{path}:1: no column {' or '.join(sorted(missing))}; expected k6's CSV")
    table = table.filter(table.metric_name == "http_req_duration")
    duration: Any = nanoseconds(table.metric_value, "ms")
    number: Any = table.timestamp.try_cast("float64")
    time: Any = ibis.cases(
        *((number < limit, nanoseconds(table.timestamp, unit)) for limit, unit in _UNITS),
        else_=nanoseconds(table.timestamp, "ns"),
    )
    # k6 stamps a request at its end; in whole seconds, its default, that is no use for the start.
    start: Any = ibis.ifelse(number < _UNITS[0][0], time, time - duration)
    columns: dict[str, Any] = {"ok": ibis.literal(True)}
    if "status" in table.columns:
        columns["status"] = table.status.try_cast("int32").fill_null(0)
        columns["ok"] = columns["status"].between(1, 399)
    if "expected_response" in table.columns:
        stated: Any = table.expected_response.nullif("")
        columns["ok"] = ibis.coalesce(stated == "true", columns["ok"])
    if "error" in table.columns:
        columns["error"] = table.error.nullif("")
    samples = table.select(row=table.row, start_ns=start, duration_ns=duration, **columns)
    # Rows of one second look alike, so equal rows say nothing about duplication.
    return Source(samples, rejected)
