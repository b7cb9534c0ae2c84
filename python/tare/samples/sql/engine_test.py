# SPDX-License-Identifier: Apache-2.0
"""What the engine must not do by itself: take names as patterns, write where the user works."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import read_load_output
from tare.samples.sql.engine import connect, first_line

NAMES = ("run1", "run[1]", "a*", "ab", "a?", "[[]", "it's", "{a,b}", "~")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_name_is_no_pattern(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "r[1]"
    folder.mkdir()
    for duration, name in enumerate(NAMES, start=1):
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.table({"duration_ns": [duration]}), path)
        elif kind == "csv":
            path.write_text(f"latency_ns\n{duration}\n")
        else:
            span = f'{{"startTimeUnixNano": 0, "endTimeUnixNano": {duration}}}'
            path.write_text(f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{span}]}}]}}]}}\n')
    found = [read_load_output(folder / f"{name}.{kind}")["duration_ns"] for name in NAMES]
    assert [column.to_pylist() for column in found] == [[n + 1] for n in range(len(NAMES))]


def test_a_pattern_cannot_have_a_backslash(tmp_path: Path) -> None:
    inside = tmp_path / "a\\b.csv"
    inside.write_text("latency_ns\n5\n")
    assert len(read_load_output(inside)) == 1
    file = tmp_path / "a\\b*.csv"
    file.write_text("latency_ns\n5\n")
    with pytest.raises(InputError, match="has a backslash and one of"):
        read_load_output(file)


def test_what_does_not_fit_into_memory_is_no_file_beside_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("tempfile.tempdir", str(there))
    backend = connect()
    backend.raw_sql("SET memory_limit = '40MB'")
    backend.raw_sql("CREATE TEMP TABLE t AS SELECT hash(range) AS x FROM range(10_000_000)")
    assert not list(here.iterdir())
    (folder,) = there.iterdir()
    assert list(folder.glob("*/*"))
    backend.disconnect()
    assert not list(folder.glob("*/"))


def test_an_error_is_told_without_the_call_that_it_came_from() -> None:
    java = "An error occurred while calling o61.count.\n: java.io.IOException: gone\n\tat a.B.c()"
    assert first_line(Exception(java)) == "java.io.IOException: gone"
    assert first_line(Exception("Parser Error: no\nLINE 1")) == "Parser Error: no"
