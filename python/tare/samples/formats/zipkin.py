# SPDX-License-Identifier: Apache-2.0
"""Zipkin's spans as JSON, version 2: a list of spans, a list of traces (`/api/v2/traces`), or one
span or list a line; times in whole µs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.formats.json_file import stored, time_ns, whole
from tare.samples.formats.json_lines import require
from tare.samples.formats.source import Source
from tare.samples.formats.span_names import full_name, plain, ungrouped
from tare.samples.sql import column as sql

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

CLIENT = "/client"
"""Suffix of the id of a client span whose server span has the same id."""


def read(backend: Database, path: Path, options: ImportOptions = NOTHING) -> Source:
    """Reads every span; a span with a tag `error`, whatever it says, has failed."""
    lazy = whole(backend, path)
    # A list of lists, a list, or a span: other values count as a list of one value.
    traces = lazy.select(of=_listed(lazy.json))
    spans = traces.select(span=_listed(traces.of))
    table = stored(backend, spans.filter(spans.span["id"].notnull()), path)
    require(table, 0, path, "span")
    span: Any = table.span
    named = table.select(
        "span",
        row=table.rowid(),
        trace_id=span["traceId"].json_text,
        id=span["id"].json_text,
        side=span["kind"].json_text.lower(),
        parent=span["parentId"].json_text,
        is_shared=(span["shared"].cast("string") == "true").fill_null(False),
    )
    # Client and server of a call share an id, and the server's calls refer to it as their parent.
    servers = named.filter(named.is_shared).select("trace_id", "id").distinct()
    joined = named.left_join(servers.mutate(served=sql.literal(True)), ["trace_id", "id"])
    is_client: Any = joined.served.fill_null(False) & ~joined.is_shared
    span = joined.span
    endpoint = span["localEndpoint"]
    service = endpoint["serviceName"].json_text
    group = None if options.group_by is None else plain(span["tags"][options.group_by])
    samples = joined.select(
        "row",
        "trace_id",
        start_ns=time_ns(span["timestamp"], "us"),
        duration_ns=time_ns(span["duration"], "us"),
        ok=span["tags"]["error"].isnull(),
        service=service,
        host=sql.coalesce(endpoint["ipv4"].json_text, endpoint["ipv6"].json_text),
        span=full_name(
            service,
            span["name"].json_text,
            joined.side,
            group,
        ),
        span_id=is_client.ifelse(joined.id + CLIENT, joined.id),
        parent_id=joined.is_shared.ifelse(joined.id + CLIENT, joined.parent),
    )
    known = table.select(key=sql.function("JSON_KEYS", table.span["tags"]).unnest())
    own = None if options.group_by is None else table.span["tags"][options.group_by]
    return Source(samples, ungrouped=ungrouped(options.group_by, table, own, known))


def _listed(value: Any) -> Any:
    """The elements of a JSON array; another value is its only element."""
    return sql.coalesce(value.json_list, sql.function("LIST_VALUE", value)).unnest()
