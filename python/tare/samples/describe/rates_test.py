# SPDX-License-Identifier: Apache-2.0
"""Requests per second and error rates of files and of runs that took turns."""

from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from tare.samples import ImportOptions, parse_columns, read_files
from tare.samples.describe.rates import Counted, counted, throughputs
from tare.samples.sql.engine import connect

MS = 1_000_000


def test_throughput_is_what_was_answered_per_second_of_the_load(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "".join(f"{1_700_000_000 + n / 100},10,{n % 10 != 0}\n" for n in range(100))
    path.write_text(f"start_time,response_time,ok\n{rows}")
    options = ImportOptions(parse_columns("start=start_time,duration=response_time,ok=ok"), "ms")
    (run,) = read_files({"a": [path]}, "a", options=options).runs
    # From the first start to the last end: 0.99 s and the last request's 10 ms.
    assert run.summaries["throughput"] == pytest.approx(90)
    assert run.summaries["error_rate"] == pytest.approx(0.1)


def test_a_file_without_start_times_has_no_throughput(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("response_time\n" + "10\n" * 100)
    (run,) = read_files({"a": [path]}, "a").runs
    assert "throughput" not in run.summaries
    assert run.summaries["error_rate"] == 0


def test_time_between_slices_belongs_to_other_conditions() -> None:
    rows = [
        {"run": 1, "span": "request", "slice": n // 10, "ok": True, "duration_ns": MS}
        | {"start_ns": (n // 10) * 1_000 * MS + (n % 10) * MS}
        for n in range(50)
    ]
    # 50 requests in five slices of 10 ms each, a second apart.
    assert throughputs(ibis.memtable(rows)) == {(1, "request"): pytest.approx(1_000)}


def test_one_pass_counts_lost_rows_and_the_rate_of_the_others() -> None:
    beyond = 2**62 + 1
    rows: list[dict[str, Any]] = [
        {"run": run, "slice": n // 10, "ok": n % 5 != 0, "duration_ns": MS}
        | {"start_ns": (n // 10) * 1_000 * MS + (n % 10) * MS}
        for run in (1, 2)
        for n in range(50)
    ]
    rows += [
        {"run": 2, "slice": 0, "ok": True, "duration_ns": beyond, "start_ns": beyond},
        {"run": 3, "slice": 0, "ok": True, "duration_ns": beyond, "start_ns": beyond},
        {"run": 4, "slice": 0, "ok": True, "duration_ns": MS, "start_ns": None},
    ]
    table = connect().create_table("samples", pa.Table.from_pylist(rows))
    found = counted(table, table.duration_ns < beyond, table.ok)
    assert found == {
        1: Counted(rows=50, failed=10, lost=0, rate=800.0),
        2: Counted(rows=51, failed=10, lost=1, rate=800.0),
        3: Counted(rows=1, failed=0, lost=1, rate=None),
        4: Counted(rows=1, failed=0, lost=0, rate=None),
    }
