# SPDX-License-Identifier: Apache-2.0
"""What tells spans of a trace apart: `shop: GET / (server)`, `front: GET / (client)`."""

from __future__ import annotations

from typing import Any

from tare.samples.sql import column as sql

KINDS = ("server", "client", "producer", "consumer")


def full_name(service: Any, name: Any, kind: Any) -> Any:
    """A span's own name with its service and kind, texts that may be null or of no such kind."""

    before = (service.nullif("") + ": ").fill_null("")
    after: Any = kind.isin(KINDS).fill_null(False).ifelse(" (" + kind + ")", "")
    return before.concat(name.fill_null("")).concat(after)


def attribute(of: Any, pairs: str, key: str) -> Any:
    """The text of the JSON value that `key` has among `pairs`, an array of {"key", "value"}."""

    keys, values = (
        sql.function("JSON_EXTRACT", of, f"$.{pairs}[*].{part}").cast("array<string>")
        for part in ("key", "value")
    )
    place = keys.index(f'"{key}"')
    return (place >= 0).ifelse(values[place], sql.null("string"))
