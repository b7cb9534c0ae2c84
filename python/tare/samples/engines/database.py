# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse server or a Trino cluster that holds the samples in a table."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
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

    name, asked = url.partition(":")[0], _without_password(url)
    if find_spec(CLIENTS[name]) is None:
        raise InputError(f"--engine {asked}: is not installed; pip install 'tare[{name}]'")
    # Its errors are raised, too, and told once.
    logging.getLogger(CLIENTS[name]).setLevel(logging.CRITICAL)
    with _answering(asked):
        return ibis.connect(url.partition("#")[0])


def read_table(backend: Any, url: str) -> Table:
    """The table that the url names after `#`, `samples` unless it does.

    Raises InputError where there is none, and where nothing answers.
    """
    name = urlsplit(url).fragment or "samples"
    with _answering(_without_password(url)):
        tables = backend.list_tables()
        if name in tables:
            table: Table = backend.table(name)
            return table
    raise InputError(f"--engine {_without_password(url)}: no table '{name}'; name one: URL#TABLE")


@contextmanager
def _answering(asked: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each client has its own
        reason = str(error).partition("\n")[0]
        raise InputError(f"--engine {asked}: no answer: {reason}") from error


def _without_password(url: str) -> str:
    return re.sub(r"//.*@", "//", url)
