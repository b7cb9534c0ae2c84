# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa

from tare.samples.describe.span_tree import ahead
from tare.samples.sql.engine import connect
from tare.samples.sql.table import fresh_name

SPANS = 300


def test_spans_with_one_id_are_joined_once() -> None:
    """A file may have one id any number of times, and pairs grow as its square."""
    outer = [("outer", "a", 10**9 + n) for n in range(SPANS)]
    inner = [("inner", f"b{n}", 0) for n in range(SPANS)]
    names = ("span", "span_id", "start_ns")
    rows = [dict(zip(names, row, strict=True)) for row in (*outer, *inner)]
    backend = connect()
    table = pa.Table.from_pylist([row | {"trace_id": "t", "parent_id": "a"} for row in rows])
    spans = backend.create_table(fresh_name("spans"), table)
    (line,) = ahead(spans)
    assert line.startswith(f"{SPANS} of {SPANS} 'inner' begin before their parent span")
