# SPDX-License-Identifier: Apache-2.0
"""Gatling 3's simulation.log in its text form: records of tab-separated fields, whole ms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError, NoRequestsError
from tare.samples.formats.csv_file import opened, read_lines
from tare.samples.formats.labels import mixed
from tare.samples.formats.source import Source
from tare.samples.formats.times import bounded, nanoseconds
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

# Until 3.3 a field of the user's number stood behind the word REQUEST.
STATUS, STATUS_UNTIL_3_3 = 5, 6
RESULTS = ("OK", "KO")


def read(backend: Database, path: Path) -> Source:
    """Reads the records of requests; those of users and groups are passed over."""

    with opened(path) as file:
        start = file.read(64)
    if start.startswith(b"\0"):
        # A text: four bytes of length, then its letters.
        version = start[5 : 5 + int.from_bytes(start[1:5])].decode(errors="replace")
        raise InputError(
            f"{path}: is the binary log of Gatling {version}; run the simulation with Gatling"
            " 3.11 or earlier, which writes text"
        )
    table, rejected = read_lines(backend, path)
    table = table.filter(table.line.startswith("REQUEST\t"))
    if not count_rows(table.limit(1)):
        raise NoRequestsError(f"{path}: no line of a REQUEST; was the simulation stopped early?")
    fields: Any = table.line.split("\t")
    older: Any = ~fields[STATUS].isin(RESULTS) & fields[STATUS_UNTIL_3_3].isin(RESULTS)
    status: Any = older.fill_null(False).ifelse(STATUS_UNTIL_3_3, STATUS)
    begun, ended = (bounded(nanoseconds(fields[status - back], "ms")) for back in (2, 1))
    told: Any = fields[status]
    samples = table.select(
        row=table.row,
        start_ns=begun,
        duration_ns=told.isin(RESULTS).ifelse(ended - begun, sql.null("int64")),
        ok=(told == "OK").fill_null(False),
        error=fields[status + 1].strip().nullif(""),
    )
    note = "Gatling rounds to whole milliseconds: smaller differences cannot be seen"
    remedy = "to compare each by itself, keep the lines of one in a log of their own"
    named = table.select(name=fields[status - 3].fill_null(""))
    return Source(samples, rejected, notes=(note, *mixed(named, "name", remedy)))
