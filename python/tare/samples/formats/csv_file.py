# SPDX-License-Identifier: Apache-2.0
"""CSV as text: every field stays a string, so that no bad row stops or disappears from a file."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any, cast

from tare.errors import InputError, NoRequestsError
from tare.samples.formats.lines import lines, plain_lines
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows, exactly, first_line, store
from tare.samples.sql.table import fresh_name

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table

UNREADABLE = (OSError, EOFError, zlib.error)
ROWS = 10_000
"""That are Python's own objects at once."""
ROW = " row"
"""The column of row numbers: no header has this name, since blanks around names are cut."""


def read_text(backend: Database, path: Path) -> tuple[Table, int]:
    """The file's rows as strings with `ROW`, and how many rows were lost.

    Lost are rows with too many fields, and those that broken quotes made part of another.
    """

    delimiter, names = _header(path)
    with _sound(path) as (sound, count), _blamed(path, "CSV: a header and one row per request"):
        table, rejected = _stored(
            backend,
            sound,
            columns=dict.fromkeys(names, "VARCHAR"),
            header=True,
            delim=delimiter,
            quote='"',
            escape='"',
            null_padding=True,
            # In parallel, the engine refuses files whose quoted texts have several lines.
            parallel=False,
        )
    several = sql.or_(*(table[name].contains("\n") for name in table.columns))
    (counted,) = table.aggregate(rows=table.count(), several=several.sum()).rows()
    rows, some = (int(counted[name] or 0) for name in ("rows", "several"))
    inside, swallowed = _within_quotes(table.filter(several), delimiter) if some else (0, 0)
    lost = swallowed + max(count - 1 - rows - inside, rejected)
    return table.mutate(**{ROW: table.rowid()}), lost


def equal_rows(table: Table) -> int:
    """How many rows of `read_text` equal an earlier row in every field of the file."""
    fields = table.drop(ROW)
    # Rows that are equal have equal hashes, and whole numbers are counted faster than texts.
    hashes = sql.function("HASH", *(fields[name] for name in fields.columns))
    (counted,) = fields.aggregate(rows=fields.count(), distinct=hashes.nunique()).rows()
    rows = int(counted["rows"])
    return 0 if counted["distinct"] == rows else rows - count_rows(fields.distinct())


def read_lines(backend: Database, path: Path) -> tuple[Table, int]:
    """The file's lines as `line` with `row`, and how many could not be taken as text."""
    with _sound(path) as (sound, _), _blamed(path, "lines of text"):
        table, rejected = _stored(
            backend,
            sound,
            columns={"line": "VARCHAR"},
            header=False,
            # A character that stands in no text file: a line is one field.
            delim="\x1f",
            quote="",
            escape="",
        )
    return table.mutate(row=table.rowid()), rejected


def is_gzipped(path: Path) -> bool:
    """Whether the file begins as a gzip file does: names may lie, as after a download."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def opened(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked. Raises OSError, here or when they are read."""
    return cast("IO[bytes]", gzip.open(path, "rb")) if is_gzipped(path) else path.open("rb")


def _within_quotes(several: Table, delimiter: str) -> tuple[int, int]:
    """Of rows of several lines, how many stand within quotes, and how many of them have the fields
    of a row."""
    count = rows = 0
    batches = several.to_pyarrow().to_batches(max_chunksize=ROWS)
    for row in (row for batch in batches for row in batch.to_pylist()):
        for place, field in enumerate(row.values()):
            _, *further = re.split("\r?\n", field or "")
            if further:
                *whole, last = further
                count += 1 + sum(map(bool, whole))
                rows += sum(line.count(delimiter) >= len(row) - 1 for line in whole)
                # The fields after this field stand in the last line too.
                rows += last.count(delimiter) >= max(place, 1)
    return count, rows


@contextmanager
def _blamed(path: Path, expected: str) -> Iterator[None]:
    """Turns what the engine says of the file it reads into an error about the user's."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise InputError(
            f"{path}: cannot be read: {first_line(error)}; expected {expected}"
        ) from error


def _stored(backend: Database, path: Path, **options: Any) -> tuple[Table, int]:
    """The rows of a file, read as `options` say, and how many the engine rejected."""

    name = fresh_name("csv")
    errors, scans = f"{name}_errors", f"{name}_scans"
    lazy = backend.reading(
        "read_csv",
        [exactly(path)],
        auto_detect=False,
        compression="gzip" if is_gzipped(path) else "none",
        ignore_errors=True,
        store_rejects=True,
        rejects_table=errors,
        rejects_scan=scans,
        rejects_limit=0,
        **options,
    )
    table = store(backend, "csv", lazy)
    # How many lines is asked only if there are some: it takes as long as reading a short file.
    found = backend.table(errors)
    rejected = count_rows(found) and count_rows(found.select("line").distinct())
    for told in (errors, scans):
        backend.drop_table(told)
    return table, rejected


@contextmanager
def _sound(path: Path) -> Iterator[tuple[Path, int]]:
    """A file that the engine takes apart, and how many lines are not empty.

    It is the file itself, or a copy where lines are not UTF-8, end in different ways or have a
    carriage return inside: the engine would drop the first and refuse the others. The copy is
    without lines that are too long, which the engine would hold in memory and drop.
    """
    count, sound, ends = 0, True, set()
    try:
        with opened(path) as file:
            plain = plain_lines(file)
        if plain is not None:
            yield path, plain
            return
        with opened(path) as file:
            for line in lines(file):
                if line is None:
                    count, sound = count + 1, False
                    continue
                count += bool(line.strip(b"\r\n"))
                returned = line.endswith(b"\r\n")
                if returned or line.endswith(b"\n"):
                    ends.add(returned)
                sound = sound and line.count(b"\r") == returned and _is_utf8(line)
        if sound and len(ends) < 2:
            yield path, count
            return
        with opened(path) as file, NamedTemporaryFile(suffix=".csv") as copy:
            for line in filter(None, lines(file)):
                copy.write(_text(line.rstrip(b"\r\n").replace(b"\r", b" ")).encode() + b"\n")
            copy.flush()
            yield Path(copy.name), count
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _is_utf8(line: bytes) -> bool:
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(line: bytes) -> str:
    """A line of UTF-8, or else of Latin-1, in which every byte is a letter."""
    return line.decode("utf-8" if _is_utf8(line) else "latin-1")


def _header(path: Path) -> tuple[str, list[str]]:
    try:
        with opened(path) as file:
            line = file.readline(65_536)
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(
            f"{path}: is UTF-16, as PowerShell's > writes it; write it as UTF-8:"
            " Get-Content FILE | Set-Content -Encoding utf8 OTHER"
        )
    header = _text(line.removeprefix(codecs.BOM_UTF8))
    if not header.strip():
        raise NoRequestsError(
            f"{path}: the file is empty; expected a header and one row per request"
        )
    if any(sign < " " and sign not in "\t\r\n" for sign in header):
        raise InputError(
            f"{path}: is not text; expected CSV, or a format of docs/formats/inputs.md"
        )
    delimiter = max(",;\t", key=header.count)
    try:
        fields = next(csv.reader([header], delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{path}:1: not the header of a CSV file: {error}") from error
    names = [name.strip() or f"column {place}" for place, name in enumerate(fields, start=1)]
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InputError(f"{path}:1: two columns have the name '{name}'; rename one")
        seen.add(name.lower())
    return delimiter, names
