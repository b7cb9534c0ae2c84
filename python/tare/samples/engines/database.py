# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse server or a Trino cluster that holds the samples in a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tare.errors import InputError

if TYPE_CHECKING:
    from ibis.expr.types import Table

CLIENTS = {"clickhouse": "clickhouse_connect", "trino": "trino"}


def connect(url: str) -> Any:
    """`clickhouse://USER:PASSWORD@HOST:PORT/DATABASE` or `trino://USER@HOST:PORT/CATALOG/SCHEMA`.

    Raises InputError where the client is not installed or nothing answers.
    """
    from importlib.util import find_spec

    import ibis

    name, asked = urlsplit(url).scheme, re.sub(r"//.*@", "//", url)
    if find_spec(CLIENTS[name]) is None:
        raise InputError(f"--engine {asked}: is not installed; pip install 'tare[{name}]'")
    try:
        return ibis.connect(url.partition("#")[0])
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"--engine {asked}: no connection: {reason}") from error


def read_table(backend: Any, url: str) -> Table:
    """The table that the url names after `#`, `samples` unless it does. InputError without one."""
    name = urlsplit(url).fragment or "samples"
    if name not in backend.list_tables():
        raise InputError(f"--engine: there is no table '{name}'; name one as in URL#TABLE")
    table: Table = backend.table(name)
    return table
