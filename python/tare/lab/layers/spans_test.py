# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa

from tare.lab.layers.spans import of_load


def test_traces_of_the_load_are_kept_whole() -> None:
    spans = pa.table({
        "trace_id": ["before", "before", "in", "in", "in", "after"],
        "start_ns": [90, 110, 100, 120, 210, 201],
    })  # fmt: skip
    assert of_load(spans, 100, 200)["trace_id"].to_pylist() == ["in"] * 3


def test_no_spans() -> None:
    none = pa.table({"trace_id": pa.array([], "string"), "start_ns": pa.array([], "int64")})
    assert of_load(none, 100, 200).num_rows == 0
