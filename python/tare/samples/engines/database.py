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
    from tare.samples.sql.table import Table

CLIENTS = {"clickhouse": "clickhouse_connect", "trino": "trino"}
NEEDED = ("condition", "block", "run", "start_ns", "duration_ns")


def connect(url: str) -> Any:
    """`clickhouse://USER:PASSWORD@HOST:PORT/DATABASE` or `trino://USER@HOST:PORT/CATALOG/SCHEMA`.

    Raises InputError where the client is not installed or nothing answers.
    """
    from importlib.util import find_spec

    import ibis

    name, asked = url.partition(":")[0], without_password(url)
    if find_spec(CLIENTS[name]) is None:
        raise InputError(f"--engine {asked}: is not installed; pip install 'tare[{name}]'")
    # Its errors are raised, too, and told once.
    logging.getLogger(CLIENTS[name]).setLevel(logging.CRITICAL)
    with _answering(asked):
        return ibis.connect(url.partition("#")[0])


def read_table(backend: Any, url: str) -> Table:
    """The table that the url names after `#`, `samples` unless it does.

    Raises InputError where there is none, where it lacks a column, and where nothing answers.
    """
    asked, name = without_password(url), urlsplit(url).fragment or "samples"
    with _answering(asked):
        table: Table | None = backend.table(name) if name in backend.list_tables() else None
    if table is None:
        raise InputError(f"--engine {asked}: no table '{name}'; give it as URL#TABLE")
    if missing := [column for column in NEEDED if column not in table.columns]:
        raise InputError(
            f"--engine {asked}: the table '{name}' has no column {', '.join(missing)};"
            " load the samples of a result with the names of their folders"
        )
    return table


@contextmanager
def _answering(asked: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each client has its own
        reason = str(error).partition("\n")[0]
        raise InputError(f"--engine {asked}: no answer: {reason}") from error


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    return re.sub(r"//.*@", "//", url)
