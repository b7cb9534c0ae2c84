# SPDX-License-Identifier: Apache-2.0
"""CSV as text: every field stays a string, so that no bad row stops or disappears from a file."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from tare.errors import InputError
from tare.samples.engine import count_rows, first_line

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table

UNREADABLE = (OSError, EOFError, zlib.error)
ROW = " row"
"""The column of row numbers: no header has this name, since blanks around names are cut."""


def read_text(backend: Backend, path: Path) -> tuple[Table, int]:
    """The file's rows as strings with `ROW`, and how many rows were lost.

    Lost are rows with too many fields, and those that broken quotes made part of another.
    """
    import duckdb
    import ibis

    name = ibis.util.gen_name("csv")
    delimiter, names = _header(path)
    try:
        lazy = backend.read_csv(
            path,
            columns=dict.fromkeys(names, "VARCHAR"),
            auto_detect=False,
            header=True,
            delim=delimiter,
            compression="gzip" if is_gzipped(path) else "none",
            quote='"',
            escape='"',
            null_padding=True,
            # In parallel, the engine refuses files whose quoted texts have several lines.
            parallel=False,
            ignore_errors=True,
            store_rejects=True,
            rejects_table=f"{name}_errors",
            rejects_scan=f"{name}_scans",
            rejects_limit=0,
        )
        table = backend.create_table(name, lazy, temp=True)
        errors = backend.table(f"{name}_errors")
        rejected = count_rows(errors.select("line").distinct())
    except duckdb.Error as error:
        raise InputError(
            f"{path}: cannot be read as CSV: {first_line(error)};"
            " expected a header and one row a request, in UTF-8"
        ) from error
    rows = count_rows(table)
    inside, swallowed = _within_quotes(table, delimiter)
    lost = swallowed + max(_lines(path) - 1 - rows - inside, rejected)
    return table.mutate(**{ROW: table.rowid()}), lost


def equal_rows(table: Table) -> int:
    """How many rows of `read_text` equal an earlier one in every field of the file."""
    return count_rows(table) - count_rows(table.drop(ROW).distinct())


def read_lines(backend: Backend, path: Path) -> tuple[Table, int]:
    """The file's lines as `line` with `row`, and how many could not be taken as text."""
    import duckdb
    import ibis

    name = ibis.util.gen_name("lines")
    try:
        lazy = backend.read_csv(
            path,
            columns={"line": "VARCHAR"},
            auto_detect=False,
            header=False,
            # A character that stands in no text file: a line is one field.
            delim="\x1f",
            quote="",
            escape="",
            compression="gzip" if is_gzipped(path) else "none",
            ignore_errors=True,
            store_rejects=True,
            rejects_table=f"{name}_errors",
            rejects_scan=f"{name}_scans",
            rejects_limit=0,
        )
        table = backend.create_table(name, lazy, temp=True)
        rejected = count_rows(backend.table(f"{name}_errors").select("line").distinct())
    except duckdb.Error as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error
    return table.mutate(row=table.rowid()), rejected


def is_gzipped(path: Path) -> bool:
    """Whether the file begins as a gzip file does: names may lie, as after a download."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def opened(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked. Raises OSError, here or when they are read."""
    return cast("IO[bytes]", gzip.open(path, "rb")) if is_gzipped(path) else path.open("rb")


def _within_quotes(table: Table, delimiter: str) -> tuple[int, int]:
    """How many lines stand within quotes, and how many of them have the fields of a row."""
    import ibis

    several = ibis.or_(*(table[name].contains("\n") for name in table.columns))
    lines = rows = 0
    for row in table.filter(several).to_pyarrow().to_pylist():
        for place, field in enumerate(row.values()):
            _, *further = re.split("\r?\n", field or "")
            if further:
                *whole, last = further
                lines += 1 + sum(map(bool, whole))
                rows += sum(line.count(delimiter) >= len(row) - 1 for line in whole)
                # The fields after this one stand in the last line too.
                rows += last.count(delimiter) >= max(place, 1)
    return lines, rows


def _lines(path: Path) -> int:
    """Lines of the file that are not empty, the header among them."""
    with opened(path) as file:
        return sum(1 for line in file if line.strip(b"\r\n"))


def _header(path: Path) -> tuple[str, list[str]]:
    try:
        with opened(path) as file:
            header = file.readline(65_536).decode("utf-8-sig", errors="replace")
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not header.strip():
        raise InputError(f"{path}: the file is empty; expected a header and one row a request")
    delimiter = max(",;\t", key=header.count)
    try:
        fields = next(csv.reader([header], delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{path}:1: no header of a CSV file: {error}") from error
    names = [name.strip() or f"column {place}" for place, name in enumerate(fields, start=1)]
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InputError(f"{path}:1: two columns have the name '{name}'; rename one")
        seen.add(name.lower())
    return delimiter, names
