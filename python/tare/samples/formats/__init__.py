# SPDX-License-Identifier: Apache-2.0
"""One file a format; each gives a `Source` or `Counted`, and `NAMES` knows which to use."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError, NoRequestsError
from tare.samples.formats.csv_file import UNREADABLE, opened
from tare.samples.formats.damaged import refused
from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.formats.source import Source

if TYPE_CHECKING:
    from tare.samples.counted import Counted
    from tare.samples.sql.table import Database

NAMES = (
    "locust", "jmeter", "jmeter-xml", "k6", "k6-json", "oha", "oha-json", "hey", "fortio",
    "gatling", "wrk2", "hdr", "otlp", "jaeger",
    "jaeger-elasticsearch", "zipkin", "arrow", "parquet", "tare-log",
)  # fmt: skip
TABLES = ("locust", "k6", "arrow", "parquet")
"""Formats whose columns a user may name."""
TRACES = ("otlp", "jaeger", "jaeger-elasticsearch", "zipkin")
KEPT = ("arrow", "parquet")
"""Formats that may have the attributes that were kept when spans were received."""
"""Formats whose spans have attributes to group by."""
UNITLESS = ("locust", "hdr", "arrow", "parquet")
"""Formats that leave the unit to the user, or say themselves why not."""
_MODULES = {"k6": "k6_csv", "oha": "oha_csv"}
"""Modules whose names are not those of their formats, which users write."""
_SUFFIXES = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
_BEGINNINGS = {
    "RUN\t": "gatling",
    "ASSERTION\t": "gatling",  # A simulation's assertions stand before its run.
    "\0\0\0\0": "gatling",
    "TLBK": "tare-log",
    "PAR1": "parquet",
    "ARROW1": "arrow",
}
# A sign is looked for where its format has it, never in the rows: a URL can hold any of them.
_COLUMNS = {
    "request-start": "oha",
    "response-time": "hey",
    "metric_name": "k6",
    "timeStamp": "jmeter",
}
_KEYS = {
    "resourceSpans": "otlp",
    "startTimeMillis": "jaeger-elasticsearch",
    "traceID": "jaeger",
    "localEndpoint": "zipkin",
    "RequestedQPS": "fortio",
    "latencyPercentiles": "oha-json",
    # Of k6's lines, those of other types or metrics may have been filtered out.
    "metric": "k6-json",
}
_LINES = {
    "<testResults": "jmeter-xml",
    "#[Histogram log format version": "hdr",
    '"StartTimestamp","Interval_Length"': "hdr",
    "Latency Distribution": "wrk2",
    "Detailed Percentile": "wrk2",
}


def read(
    backend: Database, path: Path, name: str | None = None, options: ImportOptions = NOTHING
) -> Source | Counted:
    """Reads one file of one of the formats `NAMES`, found out from the file when not given.

    Raises InputError for every file that cannot be read, however it is damaged.
    """
    if not path.is_file():
        what = "is not an ordinary file" if path.exists() else "no such file"
        raise InputError(f"{path}: {what}; give a file with requests")
    name = name or detect(path)
    if name not in NAMES:
        raise InputError(f"{path}: unknown format '{name}'; expected one of {', '.join(NAMES)}")
    if options.columns and name not in TABLES:
        # Their columns have names of their own; what the user names is then a column of any CSV.
        name = "locust"
    if options.unit and not options.columns and name not in UNITLESS:
        raise InputError(
            f"{path}: the format {name} states its unit; leave out --unit, or give it as NAME=UNIT"
            " for the other conditions"
        )
    if options.group_by and name not in (*TRACES, *KEPT):
        raise InputError(
            f"{path}: --group-by: the format {name} has no attributes of spans; expected one of"
            f" {', '.join((*TRACES, *KEPT))}"
        )
    module = _MODULES.get(name, name.replace("-", "_"))
    reader = import_module(f"{__name__}.{module}").read
    more = (options,) if name in (*TABLES, *TRACES, "hdr") else ()
    with refused(path, name):
        found: Source | Counted = reader(backend, path, *more)
    return found


def detect(path: Path) -> str:
    """The format's name, from the file's suffix, else from its first 4 KiB.

    Raises NoRequestsError for a file of no bytes, InputError for a file that cannot be read.
    """
    try:
        with opened(path) as file:
            start = file.read(4096).decode(errors="replace")
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not start:
        raise NoRequestsError(f"{path}: the file is empty")
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    for beginning, name in _BEGINNINGS.items():
        if start.startswith(beginning):
            return name
    return _by_sign(start.lstrip("\ufeff \t\r\n")) or "locust"


def _by_sign(start: str) -> str | None:
    if start.startswith(("{", "[")):
        keys = set(re.findall(r'"(\w+)"\s*:', start))
        return next((name for key, name in _KEYS.items() if key in keys), None)
    header, *_ = lines = start.splitlines() or [""]
    columns = {column.strip(' "') for column in re.split("[,;\t]", header)}
    for column, name in _COLUMNS.items():
        if column in columns:
            return name
    return next(
        (name for line in lines for sign, name in _LINES.items() if line.lstrip().startswith(sign)),
        None,
    )
