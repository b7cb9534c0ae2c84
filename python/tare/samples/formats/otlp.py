# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's spans as JSON lines (OTLP/JSON, as the Collector's file exporter writes it)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.engine import count_rows
from tare.samples.formats.json_file import lines, number, stored
from tare.samples.formats.json_lines import require
from tare.samples.formats.source import Source

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

# The protocol's JSON has the numbers of enumerations; some writers have their names.
ERROR = ("2", '"STATUS_CODE_ERROR"')


def read(backend: Backend, path: Path) -> Source:
    """Reads every span; a line of metrics or logs has none, a broken line is counted."""
    lazy = lines(backend, path)
    broken = count_rows(stored(backend, lazy.filter(lazy.json.isnull()), path))
    resources = lazy.select(of=lazy.json["resourceSpans"].array.unnest())
    scopes = resources.select(of=resources.of["scopeSpans"].array.unnest())
    table = stored(backend, scopes.select(span=scopes.of["spans"].array.unnest()), path)
    require(table, broken, path, "span")
    span: Any = table.span
    start, end = (number(span[name]) for name in ("startTimeUnixNano", "endTimeUnixNano"))
    code: Any = span["status"]["code"].cast("string").fill_null("0")
    samples = table.select(
        row=table.rowid(),
        start_ns=start,
        # A span that has not ended has the end 0, and then no usable time.
        duration_ns=end - start,
        ok=~code.isin(ERROR),
        span=span["name"].str.fill_null(""),
        trace_id=span["traceId"].str,
        span_id=span["spanId"].str,
        parent_id=span["parentSpanId"].str.nullif(""),
    )
    return Source(samples, broken)
