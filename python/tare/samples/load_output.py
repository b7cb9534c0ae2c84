# SPDX-License-Identifier: Apache-2.0
"""The output of a load generator that is not Tare's own, as samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.samples.engine import connect
from tare.samples.formats import read
from tare.samples.tidy import tidy

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN = ["seq", "slice", "intended_ns", "start_ns", "duration_ns", "ok", "status", "error", "bytes"]


def read_load_output(path: Path, format: str | None = None) -> pa.Table:
    """The requests of one file in time order, with those columns of the samples table it knows.

    `format` is one of `tare.samples.FORMATS`, or None to find out. What was odd about the file is
    in the schema's metadata under `warnings`, one a line. Raises InputError for an unreadable file.
    """
    import ibis
    import pyarrow as pa

    from tare.tables import arrow_schema

    backend = connect()
    requests = tidy(backend, read(backend, Path(path), format), str(path))
    table = requests.table.order_by("place")
    if requests.ordered:
        table = table.mutate(seq=table.place)
    known = [name for name in KNOWN if name in table.columns]
    declared = arrow_schema("samples")
    schema = pa.schema([declared.field("source"), *(declared.field(name) for name in known)])
    read_in = table.select(source=ibis.literal("client"), **{name: table[name] for name in known})
    arrow = read_in.to_pyarrow().cast(schema)
    return arrow.replace_schema_metadata({"warnings": "\n".join(requests.warnings)})
