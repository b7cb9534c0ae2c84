# SPDX-License-Identifier: Apache-2.0
"""The warm-up of files that have spans."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import read_files
from tare.samples.read.foreign_files import open_files


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


def requests(path: Path, count: int = 200) -> Path:
    path.write_text("latency_ms\n" + "".join(f"{2 + n % 7}\n" for n in range(count)))
    return path


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"\n\n", "the file is empty"),
        ("a.parquet", b"", "the file is empty"),
        ("a.arrow", b"", "the file is empty"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "the file is empty"),
        ("a.csv", b"latency_ms\n", "no request could be read from 0 rows"),
        ("a.csv", b"latency_ms\nx\n-1\n", "no request could be read from 2 rows"),
        ("a.csv", b"metric_name,timestamp,metric_value\n", "no http_req_duration in it"),
        ("a.json", b'{"resourceSpans": []}\n', "no span in it"),
        ("simulation.log", b"RUN\tx\ty\t1\t\t3.11\n", "no line of a REQUEST"),
    ],
)
def test_a_file_without_a_request_makes_its_own_run_invalid(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    empty = tmp_path / name
    empty.write_bytes(content)
    others = [requests(tmp_path / f"{n}.csv") for n in range(4)]
    paths = {"a": [others[0], empty], "b": others[2:]}
    runs = read_files(paths, "a", paired=True, warm_up="auto").runs
    assert [(run.condition, run.block, run.valid) for run in runs] == [
        ("a", 1, True), ("a", 2, False), ("b", 1, True), ("b", 2, True),
    ]  # fmt: skip
    assert str(runs[1].reason).startswith(f"{empty}: {why}")
    with pytest.raises(InputError, match=rf"{why}.*\(no file of 'b' has a request\)"):
        read_files({"a": others, "b": [empty]}, "a")


def test_a_file_without_a_request_lacks_every_span_of_its_condition(tmp_path: Path) -> None:
    spans: list[str | None] = [*["pay"] * 20, *["order"] * 20]
    whole = written(tmp_path / "whole.parquet", spans)
    empty = tmp_path / "empty.parquet"
    empty.touch()
    experiment = read_files({"a": [whole, empty], "b": [whole]}, "a", warm_up="auto")
    for cut in (experiment, *experiment.cuts.values()):
        lost = [(run.run, run.span) for run in cut.runs if not run.valid]
        assert lost == [(2, "order"), (2, "pay")]


def test_the_published_analyses_go_without_an_empty_file(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    files = open_files({"a": [empty, requests(tmp_path / "a.csv", 5)]})
    assert files.durations("a").size == 5
    assert [len(spans) for spans in files.durations_by_run("a")] == [0, 1]


def test_a_file_that_is_absent_or_damaged_is_no_empty_one(tmp_path: Path) -> None:
    whole, damaged = requests(tmp_path / "whole.csv"), tmp_path / "damaged.parquet"
    damaged.write_text("nothing")
    for path, why in ((tmp_path / "absent.csv", "no such file"), (damaged, "not a Parquet file")):
        with pytest.raises(InputError, match=why):
            read_files({"a": [whole, path], "b": [whole]}, "a")
