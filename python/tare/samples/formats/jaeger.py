# SPDX-License-Identifier: Apache-2.0
"""Jaeger's traces as JSON (its interface's download, `/api/traces`): spans in whole µs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.formats.json_file import number, stored, whole
from tare.samples.formats.source import Source
from tare.samples.formats.times import NANOSECONDS

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

TRUE = ("true", '"true"')


def read(backend: Backend, path: Path) -> Source:
    """Reads every span; one with the tag error=true has failed."""
    lazy = whole(backend, path)
    traces = lazy.select(of=lazy.json["data"].array.unnest())
    table = stored(backend, traces.select(span=traces.of["spans"].array.unnest()), path)
    span: Any = table.span
    samples = table.select(
        row=table.rowid(),
        start_ns=number(span["startTime"]) * NANOSECONDS["us"],
        duration_ns=number(span["duration"]) * NANOSECONDS["us"],
        ok=~_failed(span),
        span=span["operationName"].str.fill_null(""),
        trace_id=span["traceID"].str,
        span_id=span["spanID"].str,
        parent_id=span["references"].array[0]["spanID"].str,
    )
    return Source(samples)


def _failed(span: Any) -> Any:
    import ibis

    @ibis.udf.scalar.builtin(name="json_extract", signature=(("json", "string"), "array<json>"))
    def every(value, path): ...  # type: ignore[no-untyped-def]

    keys, values = (
        every(span, f"$.tags[*].{name}").cast("array<string>") for name in ("key", "value")
    )
    place = keys.index('"error"')
    return ((place >= 0) & values[place].isin(TRUE)).fill_null(False)
