# SPDX-License-Identifier: Apache-2.0
"""The output of a load generator that is not Tare's own, as samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.samples.counted import Counted
from tare.samples.formats import read
from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.model import REQUEST
from tare.samples.read.sort_by_time import tidy
from tare.samples.sql.engine import connect

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN = [
    "span", "trace_id", "span_id", "parent_id", "seq", "slice", "intended_ns", "start_ns",
    "duration_ns", "clock_error_ns", "ok", "status", "error", "bytes",
]  # fmt: skip


def read_load_output(
    path: Path, format: str | None = None, options: ImportOptions = NOTHING
) -> pa.Table:
    """The requests of one file in time order, with those columns of the samples table it knows.

    `format` is one of `tare.samples.FORMATS`, or None to find out; `options` is what the file does
    not say of itself. Of a file that only counts, each request has the duration that its bin
    gives. The schema's metadata have what was odd about the file: under `warnings`, a line each,
    `lost`, the share of its rows that are no requests, and `stepped`, how its clock was set back.
    Raises InputError for an unreadable file.
    """

    backend = connect()
    found = read(backend, Path(path), format, options)
    if isinstance(found, Counted):
        counted = found.checked(str(path)).samples(str(path))
        whole = all(histogram.span == REQUEST for histogram in found.histograms)
        notes = [f"{path}: {note}" for note in found.notes]
        table = counted.drop_columns(["span"]) if whole else counted
        return _declared(table, "client", {"warnings": "\n".join(notes)})
    requests = tidy(backend, found, str(path))
    table = requests.table
    spans = "span" in table.columns
    if spans:
        table = table.order_by([*(["start_ns"] if requests.timed else []), "row"])
    else:
        table = table.order_by("place").mutate(seq=table.place)
    known = [name for name in KNOWN if name in table.columns]
    source = "span" if "span_id" in known else "client"
    told = {"warnings": "\n".join(requests.warnings), "lost": str(requests.lost)}
    if requests.stepped:
        told["stepped"] = requests.stepped
    return _declared(table.select(known).to_pyarrow(), source, told)


def _declared(table: pa.Table, source: str, told: dict[str, str]) -> pa.Table:
    """The columns in their declared types, where they are from, and what is told of them."""
    import pyarrow as pa

    from tare.tables import arrow_schema

    declared = arrow_schema("samples")
    whole = table.add_column(0, "source", pa.repeat(source, table.num_rows))
    schema = pa.schema([declared.field(name) for name in whole.column_names])
    return whole.cast(schema).replace_schema_metadata(told)
