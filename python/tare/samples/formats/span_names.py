# SPDX-License-Identifier: Apache-2.0
"""What tells spans of a trace apart: `shop: GET / (server)`, `front: GET / (client)`."""

from __future__ import annotations

from typing import Any

KINDS = ("server", "client", "producer", "consumer")


def full_name(service: Any, name: Any, kind: Any) -> Any:
    """A span's own name with its service and kind, texts that may be null or of no such kind."""
    import ibis

    before = (service.nullif("") + ": ").fill_null("")
    after: Any = kind.isin(KINDS).fill_null(False).ifelse(" (" + kind + ")", ibis.literal(""))
    return before + name.fill_null("") + after


def attribute(of: Any, pairs: str, key: str) -> Any:
    """The text of the JSON value that `key` has among `pairs`, an array of {"key", "value"}."""
    import ibis

    @ibis.udf.scalar.builtin(name="json_extract", signature=(("json", "string"), "array<json>"))
    def every(value, path): ...  # type: ignore[no-untyped-def]

    keys, values = (
        every(of, f"$.{pairs}[*].{part}").cast("array<string>") for part in ("key", "value")
    )
    place = keys.index(f'"{key}"')
    return (place >= 0).ifelse(values[place], ibis.null("string"))
