# SPDX-License-Identifier: Apache-2.0
"""One file a format; each gives a `Source`, and `NAMES` knows which to use for a file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.formats.csv_file import UNREADABLE, opened
from tare.samples.formats.source import Source

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

NAMES = ("locust", "jmeter", "k6", "wrk2", "arrow", "parquet")
_SUFFIXES = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
_SIGNS = {
    "metric_name": "k6",
    "timeStamp": "jmeter",
    "Latency Distribution": "wrk2",
    "Detailed Percentile": "wrk2",
}


def read(backend: Backend, path: Path, name: str | None = None) -> Source:
    """Reads one file of one of the formats `NAMES`, found out from the file when not given."""
    if not path.is_file():
        what = "is no ordinary file" if path.exists() else "no such file"
        raise InputError(f"{path}: {what}; name a file of requests")
    name = name or detect(path)
    if name not in NAMES:
        raise InputError(f"{path}: unknown format '{name}'; expected one of {', '.join(NAMES)}")
    reader: Callable[[Backend, Path], Source] = import_module(f"{__name__}.{name}").read
    return reader(backend, path)


def detect(path: Path) -> str:
    """The format's name, from the file's suffix, else from its first 4 KiB."""
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    try:
        with opened(path) as file:
            start = file.read(4096).decode(errors="replace")
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    return next((name for sign, name in _SIGNS.items() if sign in start), "locust")
