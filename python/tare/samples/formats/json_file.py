# SPDX-License-Identifier: Apache-2.0
"""JSON files: one object a line, streamed by the engine, or one object that is the whole file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import UNREADABLE, is_gzipped, opened
from tare.samples.formats.times import of_text
from tare.samples.sql.engine import exactly, first_line, quoted, store

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table

SMALLEST = 1 << 20
LARGEST_LINE = 64 << 20
LARGEST_FILE = (1 << 32) - 1
SUMMARY = 16 << 20


def lines(backend: Database, path: Path) -> Table:
    """The file's lines as `json`, null where a line is none."""
    return _objects(backend, path, "newline_delimited", LARGEST_LINE, "true")


def whole(backend: Database, path: Path) -> Table:
    """The file's objects as `json`, of any layout; the file has to be sound to its end."""
    return _objects(backend, path, "unstructured", LARGEST_FILE, "false")


def stored(backend: Database, table: Table, path: Path) -> Table:
    """A table that is computed now. Raises InputError when the file cannot be read."""
    import duckdb

    try:
        return store(backend, "json", table)
    except duckdb.Error as error:
        raise InputError(
            f"{path}: cannot be read as JSON: {first_line(error)}; was its writer stopped?"
        ) from error


def summary(path: Path) -> dict[str, Any]:
    """A small file's one object. Raises InputError when it is none."""
    try:
        with opened(path) as file:
            text = file.read(SUMMARY + 1)
        if len(text) > SUMMARY:
            raise InputError(f"{path}: is larger than {SUMMARY >> 20} MiB; expected a summary")
        found = json.loads(text)
    except (*UNREADABLE, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: found no JSON object in it; expected one")
    return found


def time_ns(value: Any, unit: str) -> Any:
    """Nanoseconds of what JSON has as a number or, as for 64 bits, as a text, in `unit`; null
    where there is none, or too large a one."""
    return of_text(value.cast("string").replace('"', ""), unit)


def _objects(backend: Database, path: Path, form: str, largest: int, ignore: str) -> Table:
    # The engine makes room for several of the largest at once, however small the file.
    largest = max(SMALLEST, min(largest, _size(path)))
    packed = "gzip" if is_gzipped(path) else "uncompressed"
    return backend.sql(
        f"SELECT json FROM read_json_objects({quoted(exactly(path))}, format = '{form}',"
        f" compression = '{packed}', maximum_object_size = {largest}, ignore_errors = {ignore})",
        schema={"json": "json"},
    )


def _size(path: Path) -> int:
    """Bytes of the file, unpacked."""
    if not is_gzipped(path):
        return path.stat().st_size
    try:
        with opened(path) as file:
            return sum(len(chunk) for chunk in iter(lambda: file.read(1 << 20), b""))
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
