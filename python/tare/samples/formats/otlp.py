# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's spans as JSON lines (OTLP/JSON, as the Collector's file exporter writes it)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.formats.json_file import lines, stored, time_ns
from tare.samples.formats.json_lines import require
from tare.samples.formats.source import Source
from tare.samples.formats.span_names import (
    HOSTS,
    attribute,
    full_name,
    keys_in,
    plain,
    ungrouped,
)
from tare.samples.formats.times import bounded
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

SERVICE = "service.name"
# The protocol's JSON has the numbers of enumerations; some writers have their names.
ERROR = ("2", '"STATUS_CODE_ERROR"')
TYPES = ("string", "int", "bool", "double", "array", "kvlist")
NUMBERS = {"2": "server", "3": "client", "4": "producer", "5": "consumer"}


def read(backend: Database, path: Path, options: ImportOptions = NOTHING) -> Source:
    """Reads every span; a line of metrics or logs has none, a broken line is counted."""
    lazy = lines(backend, path)
    broken = count_rows(stored(backend, lazy.filter(lazy.json.isnull()), path))
    resources = lazy.select(of=lazy.json["resourceSpans"].json_list.unnest())
    resources = resources.select(
        attributes=resources.of["resource"]["attributes"], scopes=resources.of["scopeSpans"]
    )
    key = options.group_by
    # By number: the engine does not tell names apart that differ in case.
    needed = (SERVICE, *HOSTS, *([] if key is None else [key]))
    place = {name: f"a{number}" for number, name in enumerate(needed)}
    typed = resources.select(
        "scopes",
        **{to: attribute(resources.attributes, name).cast("json") for name, to in place.items()},
    )
    scopes = typed.select(
        service=typed[place[SERVICE]]["stringValue"].json_text,
        host=sql.coalesce(*(_plain(typed[place[name]]) for name in HOSTS)),
        shared=sql.null("string") if key is None else _plain(typed[place[key]]),
        of=typed.scopes.json_list.unnest(),
    )
    spans = scopes.select("service", "host", "shared", span=scopes.of["spans"].json_list.unnest())
    table = stored(backend, spans, path)
    require(table, broken, path, "span")
    span: Any = table.span
    start, end = (bounded(time_ns(span[f"{name}TimeUnixNano"], "ns")) for name in ("start", "end"))
    code: Any = span["status"]["code"].cast("string").fill_null("0")
    kind = span["kind"].cast("string").replace('"', "").replace("SPAN_KIND_", "").lower()
    group = None
    if key is not None:
        group = sql.coalesce(_plain(attribute(span["attributes"], key).cast("json")), table.shared)
    samples = table.select(
        "service",
        "host",
        row=table.rowid(),
        start_ns=start,
        # A span that has not ended has the end 0, and then no usable time.
        duration_ns=end - start,
        ok=~code.isin(ERROR),
        span=full_name(table.service, span["name"].json_text, kind.substitute(NUMBERS), group),
        trace_id=span["traceId"].json_text,
        span_id=span["spanId"].json_text,
        parent_id=span["parentSpanId"].json_text.nullif(""),
    )
    known = (
        table.select(key=keys_in(table.span["attributes"])),
        resources.select(key=keys_in(resources.attributes)),
    )
    return Source(samples, broken, ungrouped=ungrouped(key, table, group, *known))


def _plain(typed: Any) -> Any:
    """The text of a value of any of the protocol's types: {"stringValue": "gold"}."""
    return sql.coalesce(*(plain(typed[f"{kind}Value"]) for kind in TYPES))
