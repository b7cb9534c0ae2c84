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
    from tare.samples.sql.table import Database

TRUE = ("true", '"true"')


def read(backend: Database, path: Path) -> Source:
    """Reads every span; one with the tag error=true has failed."""
    lazy = whole(backend, path)
    traces = lazy.select(of=lazy.json["data"].json_list.unnest())
    spans = traces.select(
        processes=traces.of["processes"], span=traces.of["spans"].json_list.unnest()
    )
    process: Any = spans.processes.entry(spans.span["processID"].json_text)
    table = stored(
        backend, spans.select(spans.span, service=process["serviceName"].json_text), path
    )
    span: Any = table.span
    kind = attribute(span, "tags", "span.kind")
    samples = table.select(
        row=table.rowid(),
        start_ns=number(span["startTime"]) * NANOSECONDS["us"],
        duration_ns=number(span["duration"]) * NANOSECONDS["us"],
        ok=~attribute(span, "tags", "error").isin(TRUE).fill_null(False),
        span=full_name(table.service, span["operationName"].json_text, kind.replace('"', "")),
        trace_id=span["traceID"].json_text,
        span_id=span["spanID"].json_text,
        parent_id=span["references"].json_list[0]["spanID"].json_text,
    )
    return Source(samples)
