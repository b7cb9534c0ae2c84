# SPDX-License-Identifier: Apache-2.0
"""Jaeger's traces as JSON (its interface's download, `/api/traces`): spans in whole µs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.formats.json_file import stored, time_ns, whole
from tare.samples.formats.source import Source
from tare.samples.formats.span_names import (
    HOSTS,
    attribute,
    full_name,
    keys_in,
    plain,
    ungrouped,
)
from tare.samples.sql import column as sql

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table

TRUE = ("true", '"true"')


def read(backend: Database, path: Path, options: ImportOptions = NOTHING) -> Source:
    """Reads every span; a span with the tag error=true has failed."""
    lazy = whole(backend, path)
    traces = lazy.select(of=lazy.json["data"].json_list.unnest())
    spans = traces.select(
        processes=traces.of["processes"], span=traces.of["spans"].json_list.unnest()
    )
    process: Any = spans.processes.entry(spans.span["processID"].json_text)
    table = stored(backend, spans.select(spans.span, process=process), path)
    return Source(samples_of(table, options), ungrouped=ungrouped_of(table, options))


def samples_of(table: Table, options: ImportOptions) -> Table:
    """The samples of a stored table of `span` and `process`, in Jaeger's JSON."""
    tags = {f"a{number}": _tag(table.process, key) for number, key in enumerate(HOSTS)}
    table = table.select("span", "process", row=table.rowid(), **tags)
    span: Any = table.span
    parent = sql.coalesce(_parent(span), span["parentSpanID"].json_text)
    service = table.process["serviceName"].json_text
    return table.select(
        "row",
        start_ns=time_ns(span["startTime"], "us"),
        duration_ns=time_ns(span["duration"], "us"),
        ok=~_tag(span, "error").isin(TRUE).fill_null(False),
        service=service,
        host=sql.coalesce(*(plain(table[tag]) for tag in tags)),
        span=full_name(
            service,
            span["operationName"].json_text,
            plain(_tag(span, "span.kind")),
            _grouped(table, options),
        ),
        trace_id=span["traceID"].json_text,
        span_id=span["spanID"].json_text,
        parent_id=parent.nullif(""),
    )


def ungrouped_of(table: Table, options: ImportOptions) -> str | None:
    """As `Source.ungrouped`, of such a table."""
    known = (table.select(key=keys_in(of["tags"])) for of in (table.span, table.process))
    return ungrouped(options.group_by, table, _grouped(table, options), *known)


def _parent(span: Any) -> Any:
    """The first reference to the same trace: links to other traces are references, too. If no
    reference names its trace, all are of the same trace."""
    traces, spans = (
        sql.function("JSON_EXTRACT", span, f"$.references[*].{part}").cast("array<string>")
        for part in ("traceID", "spanID")
    )
    place = traces.index(span["traceID"].cast("string"))
    return sql.coalesce(
        traces[0].isnull().ifelse(plain(spans[0]), sql.null("string")),
        (place >= 0).ifelse(plain(spans[place]), sql.null("string")),
    )


def _tag(of: Any, key: str) -> Any:
    """A tag's value as JSON text: from the list of tags, or from the object `tag`, which
    Elasticsearch can store instead, with @ for each dot in a name."""
    return sql.coalesce(attribute(of["tags"], key), of["tag"][key.replace(".", "@")].cast("string"))


def _grouped(table: Table, options: ImportOptions) -> Any:
    key = options.group_by
    if key is None:
        return None
    return plain(sql.coalesce(_tag(table.span, key), _tag(table.process, key)))
