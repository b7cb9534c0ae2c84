# SPDX-License-Identifier: Apache-2.0
"""The spans of a file by name, and the defects of its traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.counted import Counted
from tare.samples.describe.defects import mended
from tare.samples.describe.span_arrays import span_arrays
from tare.samples.describe.span_tree import IDS, orphans
from tare.samples.formats import TRACES, detect, read
from tare.samples.formats.import_options import ImportOptions
from tare.samples.read.sort_by_time import tidy
from tare.samples.sql import column as sql
from tare.samples.sql.engine import connect

if TYPE_CHECKING:
    from pathlib import Path

    from tare.samples.sql.table import Table

OTHERS = ("arrow", "parquet", "tare-log")
"""Formats that may have traces."""
NONE = (
    "is not a file of traces; expected OpenTelemetry's JSON lines, JSON of Jaeger or Zipkin,"
    " Jaeger's documents in Elasticsearch, or a file of 'tare spans receive' or 'fetch'"
)
QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class SpanKind:
    """All spans with the same name."""

    span: str
    spans: int
    errors: int
    per_second: float | None
    """None if all spans begin at the same time."""
    per_trace: float
    """On average over all traces, also traces without the span."""
    p50_ns: float
    p95_ns: float
    p99_ns: float


@dataclass(frozen=True)
class SpanFile:
    """The content of a file."""

    path: str
    spans: int
    traces: int
    seconds: float
    """From the first start to the last."""
    kinds: tuple[SpanKind, ...]
    """The span with the largest sum of durations first."""
    warnings: tuple[str, ...]


def read_spans(path: Path, group_by: str | None = None) -> SpanFile:
    """Reads a file of `TRACES`, or a table with the columns of samples.

    Raises InputError for a file that cannot be read or has no ids of traces.
    """
    backend = connect()
    options = ImportOptions(group_by=group_by)
    if path.is_file() and detect(path) not in (*TRACES, *OTHERS):
        raise InputError(f"{path}: {NONE}")
    found = read(backend, path, options=options)
    if isinstance(found, Counted) or not set(found.samples.columns) >= {*IDS, "start_ns"}:
        raise InputError(f"{path}: {NONE}")
    requests = tidy(backend, found, str(path))
    if requests.ungrouped is not None:
        raise InputError(f"{path}: {requests.ungrouped}")
    table = requests.table.mutate(run=sql.literal(1))
    start: Any = table.start_ns
    (whole,) = table.aggregate(
        spans=table.count(), traces=table.trace_id.nunique(), first=start.min(), last=start.max()
    ).rows()
    seconds = (whole["last"] - whole["first"]) / 1e9
    return SpanFile(
        str(path),
        whole["spans"],
        whole["traces"],
        seconds,
        tuple(_kinds(table, whole["traces"], seconds)),
        (*requests.warnings, *(f"{path}: {line}" for line in _defects(table))),
    )


def _kinds(table: Table, traces: int, seconds: float) -> Iterator[SpanKind]:
    took: Any = table.duration_ns
    found = table.group_by("span").aggregate(
        spans=table.count(),
        good=table.ok.cast("int64").sum(),
        whole=took.sum(),
        quantiles=took.quantile(QUANTILES),
    )
    for row in sorted(found.rows(), key=lambda row: -row["whole"]):
        yield SpanKind(
            row["span"],
            row["spans"],
            row["spans"] - row["good"],
            row["spans"] / seconds if seconds else None,
            row["spans"] / max(1, traces),
            *row["quantiles"],
        )


def _defects(table: Table) -> Iterator[str]:
    for share in orphans(table).values():
        yield (
            f"{share:.2%} of the spans lack their parent span: it was not recorded, or it is in"
            " another file"
        )
    if (spans := span_arrays(table)) is not None:
        yield from mended(spans).lines
