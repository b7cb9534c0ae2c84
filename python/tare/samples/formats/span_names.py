# SPDX-License-Identifier: Apache-2.0
"""What tells spans of a trace apart: `shop: GET / (server)`, `front: GET / (client)`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tare.samples.sql import column as sql

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

KINDS = ("server", "client", "producer", "consumer")
HOSTS = ("host.name", "k8s.pod.name", "service.instance.id", "hostname", "ip")
"""Attributes of a service's resource or process, of which the first that is there says where the
service runs: equal values mean the same clock."""
SHOWN = 12
"""Attributes that are named if another attribute does not exist."""
_KIND = re.compile(rf" \(({'|'.join(KINDS)})\)(?: \[.*\])?$", re.DOTALL)


def full_name(service: Any, name: Any, kind: Any, attribute: Any = None) -> Any:
    """A span's own name with its service and kind, texts that may be null or of no such kind.

    `attribute` separates spans with the same name (`shop: GET / (server) [gold]`), a text that may
    be null.
    """
    before = (service.nullif("") + ": ").fill_null("")
    after: Any = kind.isin(KINDS).fill_null(False).ifelse(" (" + kind + ")", "")
    found = before.concat(name.fill_null("")).concat(after)
    return found if attribute is None else separated(found, attribute)


def separated(name: Any, attribute: Any) -> Any:
    """Names of spans, followed by the value of an attribute unless it is null."""
    return name.concat((" [" + attribute + "]").fill_null(""))


def kind_of(name: str) -> str:
    """The kind of a span with this full name; empty if the name has none."""
    found = _KIND.search(name)
    return found[1] if found else ""


def attribute(pairs: Any, key: str) -> Any:
    """The text of the JSON value that `key` has in a JSON array of {"key", "value"}; null if none.

    Its cost grows with the array, which should be a column and no part of a larger value.
    """
    keys = sql.function("JSON_EXTRACT", pairs, "$[*].key").cast("array<string>")
    place = sql.function("LIST_INDEXOF", keys, json_string(key))
    pair = sql.function("LIST_EXTRACT", sql.function("JSON_EXTRACT", pairs, "$[*]"), place)
    return pair["value"].cast("string")


def keys_in(pairs: Any) -> Any:
    """The keys in such an array: a list of texts for each row."""
    return plain(sql.function("JSON_EXTRACT", pairs, "$[*].key").unnest())


def ungrouped(key: str | None, spans: Table, group: Any, *known: Table) -> str | None:
    """What to say if no row of `spans` has the attribute `key`, whose values are `group`.

    `known` are tables with the attributes that there are, in a column `key`.
    """
    if key is None or spans.filter(group.notnull()).limit(1).rows():
        return None
    rows = sql.union(*known).distinct().order_by("key").limit(SHOWN + 1).rows()
    names = [row["key"] for row in rows if row["key"] is not None]
    more = " and others" if len(names) > SHOWN else ""
    there = f"there are {', '.join(names[:SHOWN])}{more}" if names else "there are none"
    return f"--group-by: no span has the attribute '{key}'; {there}"


def plain(value: Any) -> Any:
    """The text of a JSON value without the quotes of a string; null stays null."""
    value = value.cast("json")
    return sql.coalesce(value.json_text, value.cast("string"))


def json_string(text: str) -> str:
    """A text as DuckDB writes it in JSON."""
    return json.dumps(text, ensure_ascii=False)
