# SPDX-License-Identifier: Apache-2.0
"""JMeter's result file (JTL) as XML: a `sample` or `httpSample` element a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

from tare.errors import NoRequestsError
from tare.samples.formats.csv_file import ROW, UNREADABLE, opened
from tare.samples.formats.jmeter import APART, from_fields
from tare.samples.formats.source import Source
from tare.samples.sql.engine import count_rows
from tare.samples.sql.table import fresh_name

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.sql.table import Database

ELEMENTS = ("sample", "httpSample")
ATTRIBUTES = {
    "ts": "timeStamp", "t": "elapsed", "s": "success", "rc": "responseCode", "by": "bytes",
    "lb": "label", "rm": "responseMessage", "tn": "threadName",
}  # fmt: skip
CHUNK = 1 << 20
LONGEST = 1 << 20
"""Bytes of a tag, which the parser holds, and looks through again with every chunk."""


def read(backend: Database, path: Path) -> Source:
    """Reads the requests; what stands inside of a request, such as redirects, is part of it."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in ATTRIBUTES.values()])
    notes: list[str] = []
    batches = pa.RecordBatchReader.from_batches(schema, _batches(path, schema, notes))
    table = backend.create_table(fresh_name("jtl"), batches)
    if notes and count_rows(table) == 0:
        raise NoRequestsError(f"{path}: {notes[0]}")
    remedy = f"in a CSV file {APART} compares each by itself"
    return from_fields(table.mutate(**{ROW: table.rowid()}), path, remedy, tuple(notes))


def _batches(path: Path, schema: pa.Schema, notes: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    rows: list[dict[str, str]] = []
    depth = 0

    def begin(element: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        if element in ELEMENTS:
            depth += 1
            if depth == 1:
                rows.append({ATTRIBUTES[key]: attributes.get(key, "") for key in ATTRIBUTES})

    def end(element: str) -> None:
        nonlocal depth
        depth -= element in ELEMENTS

    fed = 0
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        with opened(path) as file:
            while chunk := file.read(CHUNK):
                parser.Parse(chunk)
                fed += len(chunk)
                if fed - parser.CurrentByteIndex > LONGEST:
                    raise EOFError(f"a tag has more than {LONGEST >> 20} MiB")
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows.clear()
        parser.Parse(b"", True)
    # Of encodings that the parser does not know: LookupError and ValueError.
    except (expat.ExpatError, LookupError, ValueError, *UNREADABLE) as error:
        notes.append(f"the file breaks off or is damaged ({error}): what follows was not read")
    yield pa.RecordBatch.from_pylist(rows, schema)
