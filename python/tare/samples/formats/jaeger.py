# SPDX-License-Identifier: Apache-2.0
"""Jaeger's traces as JSON (its interface's download, `/api/traces`): spans in whole µs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.formats.json_file import number, stored, whole
from tare.samples.formats.source import Source
from tare.samples.formats.span_names import attribute, full_name
from tare.samples.formats.times import NANOSECONDS

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

TRUE = ("true", '"true"')


def read(backend: Backend, path: Path) -> Source:
    """Reads every span; one with the tag error=true has failed."""
    lazy = whole(backend, path)
    traces = lazy.select(of=lazy.json["data"].array.unnest())
    spans = traces.select(processes=traces.of["processes"], span=traces.of["spans"].array.unnest())
    process: Any = spans.processes[spans.span["processID"].str]
    table = stored(backend, spans.select(spans.span, service=process["serviceName"].str), path)
    span: Any = table.span
    kind = attribute(span, "tags", "span.kind")
    samples = table.select(
        row=table.rowid(),
        start_ns=number(span["startTime"]) * NANOSECONDS["us"],
        duration_ns=number(span["duration"]) * NANOSECONDS["us"],
        ok=~attribute(span, "tags", "error").isin(TRUE).fill_null(False),
        span=full_name(table.service, span["operationName"].str, kind.replace('"', "")),
        trace_id=span["traceID"].str,
        span_id=span["spanID"].str,
        parent_id=span["references"].array[0]["spanID"].str,
    )
    return Source(samples)
