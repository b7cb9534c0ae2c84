# SPDX-License-Identifier: Apache-2.0
"""The warm-up of files that have spans."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import read_files


def written(path: Path, spans: list[str | None]) -> Path:
    """A request of 1 µs each 10 µs; the spans as named."""
    count = len(spans)
    table = {"start_ns": [place * 10_000 for place in range(count)], "duration_ns": [1_000] * count}
    pq.write_table(pa.table(table | {"span": pa.array(spans, pa.string())}), path)
    return path


def test_a_span_that_the_warm_up_leaves_nothing_of_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", ["pay"] * 5 + ["order"] * 20 + [None] * 8)
    experiment = read_files({"a": [path], "b": [path]}, "a", warm_up=10)
    assert [(run.span, run.requests) for run in experiment.runs if run.run == 1] == [("order", 10)]
    told = [line for line in experiment.warnings if line.startswith(str(path))]
    assert told[:2] == [
        f"{path}: '{span}' has {count} requests, all of them within the warm-up of 10: left out"
        for span, count in (("pay", 5), ("request", 8))
    ]
    with pytest.raises(InputError, match="33 requests, all of them within the warm-up of 20"):
        read_files({"a": [path], "b": [path]}, "a", warm_up=20)


@pytest.mark.parametrize("spans", [[None] * 100, [None] * 60 + ["pay"] * 60])
def test_requests_without_a_span_have_a_warm_up_to_be_found(
    tmp_path: Path, spans: list[str | None]
) -> None:
    path = written(tmp_path / "a.parquet", spans)
    experiment = read_files({"a": [path], "b": [path]}, "a", warm_up="auto")
    assert "too few requests to see a warm-up in" in experiment.warnings[-1]
    assert sum(run.requests for run in experiment.runs) == 2 * len(spans)
