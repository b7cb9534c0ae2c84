# SPDX-License-Identifier: Apache-2.0
"""Requests that failed without an answer, and what is left in the engine's memory."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import ImportOptions, read_files, read_load_output
from tare.samples.formats.formats_test import T
from tare.samples.read.foreign_files import open_files
from tare.samples.read.sort_by_time import Requests, _in_order

OPTIONS = ImportOptions({"start": "at", "duration": "took", "ok": "ok"}, "ms")


def written(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(["at,took,ok", *rows, ""]))
    return path


def test_a_failure_without_a_duration_is_an_error_and_no_latency(tmp_path: Path) -> None:
    rows = [f"{T}.{place},{place + 1 if place % 2 else ''},{place % 2}" for place in range(10)]
    path = written(tmp_path / "a.csv", rows)
    (run, _) = read_files({"a": [path], "b": [path]}, "a", options=OPTIONS).runs
    assert (run.requests, run.errors, run.answered) == (10, 5, 5)
    assert run.summaries["mean"] == 6_000_000
    found = read_load_output(path, options=OPTIONS)
    assert found["duration_ns"].to_pylist()[:3] == [None, 2_000_000, None]
    assert found["ok"].to_pylist()[:3] == [False, True, False]
    assert found.schema.metadata[b"warnings"] == b""


def test_a_run_in_which_all_failed_is_invalid_not_unreadable(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [f"{T},,false", ",,false"])
    (run, _) = read_files({"a": [path], "b": [path]}, "a", options=OPTIONS).runs
    assert (run.requests, run.errors, run.valid) == (2, 2, False)
    assert "no successful request" in str(run.reason)


def test_rows_that_do_not_say_that_they_failed_are_no_failures(tmp_path: Path) -> None:
    rows = [f"{T},5,true", f"{T},,true", f"{T},,", f"{T}", f"{T},-1,false"]
    found = read_load_output(written(tmp_path / "a.csv", rows), options=OPTIONS)
    assert found["ok"].to_pylist() == [True]
    warnings = found.schema.metadata[b"warnings"]
    assert b"4 rows without a usable time (place 2, 3, 4 \xe2\x80\xa6): left out" in warnings


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"duration_ns": [7, None], "ok": [True, False]}, {}),
        ({"took_ns": [7, None], "code": [200, 503]}, {"duration": "took_ns", "status": "code"}),
    ],
)
def test_parquet_has_failures_without_a_duration_too(
    tmp_path: Path, columns: dict[str, list[Any]], options: dict[str, str]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    found = read_load_output(path, options=ImportOptions(options))
    assert found["duration_ns"].to_pylist() == [7, None]
    assert found["ok"].to_pylist() == [True, False]


def test_a_file_cut_inside_of_a_word_keeps_its_other_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [f"{T},1,true", f"{T},2,true", f"{T},3,tru"])
    found = read_load_output(path, options=OPTIONS)
    assert found["duration_ns"].to_pylist() == [1_000_000, 2_000_000]
    warnings = found.schema.metadata[b"warnings"].decode()
    assert "column 'ok' has 'tru' and others, neither true nor false, 1 times" in warnings
    assert "1 row without a usable time (place 3): left out" in warnings


def test_failures_have_a_place_in_the_warm_up(tmp_path: Path) -> None:
    """Of 1,100 requests the first 100 failed and the next 100 were slow."""
    slow = [50] * 100 + [10 + place % 5 for place in range(900)]
    rows = [f"{T + place},,false" for place in range(100)]
    rows += [f"{T + 100 + place},{took},true" for place, took in enumerate(slow)]
    path = written(tmp_path / "a.csv", rows)
    experiment = read_files({"a": [path], "b": [path]}, "a", warm_up="auto", options=OPTIONS)
    assert [run.requests for run in experiment.runs] == [900, 900]


def test_only_requests_stay_in_memory(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{n}.csv", [f"{T},5,true", "1,2,3,4"]) for n in range(3)]
    backend = open_files({"a": paths}, options=OPTIONS).backend
    kept = backend.raw_sql(
        "SELECT sum(estimated_size) FROM duckdb_tables() WHERE NOT internal"
    ).fetchall()
    assert kept == [(3,)]


def test_times_too_far_away_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    numbers = {"t0_ns": [-(2**63) + 1], "t1_ns": [2**63 - 1]}
    pq.write_table(pa.table(numbers), path)
    with pytest.raises(InputError, match=r"a\.parquet: no request could be read") as raised:
        read_load_output(path, options=ImportOptions({"start": "t0_ns", "end": "t1_ns"}))
    assert "\n" not in str(raised.value)


def test_a_clock_that_was_set_back_makes_its_run_invalid(tmp_path: Path) -> None:
    times = [T + place for place in range(100)]  # in seconds
    back = written(tmp_path / "a.csv", [f"{t - 3_600 * (t > T + 50)},5,true" for t in times])
    late = written(tmp_path / "b.csv", [f"{t},5,true" for t in [times[99], *times[:99]]])
    (first, second) = read_files({"a": [back], "b": [late]}, "a", options=OPTIONS).runs
    assert (first.valid, second.valid) == (False, True)
    # As seen from the row before the last in order.
    assert (
        first.reason
        == f"{back}: its clock was set back by 3,598 s on the way, or it contains two recordings"
    )


def test_a_file_in_another_order_is_no_clock_set_back(tmp_path: Path) -> None:
    users = written(
        tmp_path / "a.csv", [f"{T + 10 * at},5,true" for _ in range(4) for at in range(9)]
    )
    options = ImportOptions({"start": "at", "duration": "took", "ok": "ok", "span": "span"}, "ms")
    spans = tmp_path / "b.csv"
    rows = [f"{T + 10 * at},5,true,{span}" for span in ("pay", "order") for at in range(9)]
    spans.write_text("\n".join(["at,took,ok,span", *rows, ""]))
    assert all(
        run.valid for run in read_files({"a": [users], "b": [users]}, "a", options=OPTIONS).runs
    )
    assert all(
        run.valid for run in read_files({"a": [spans], "b": [spans]}, "a", options=options).runs
    )


def test_a_clock_that_was_set_back_again_and_again_makes_its_run_invalid(tmp_path: Path) -> None:
    """Five times by 100 s, in parts of 20 s."""
    rows = [f"{T + place - 100 * (place // 20)},5,true" for place in range(120)]
    back = written(tmp_path / "a.csv", rows)
    newest = written(tmp_path / "b.csv", [f"{T - 2 * place},5,true" for place in range(120)])
    (first, second) = read_files({"a": [back], "b": [newest]}, "a", options=OPTIONS).runs
    assert (first.valid, second.valid) == (False, True)
    assert "its clock was set back by 98 s" in str(first.reason)


@pytest.mark.parametrize(
    ("starts", "in_order"),
    [
        ([1, 2, 2, 5, 9], True),
        ([7], True),
        ([2, 2, 1, 5, 9], False),
        ([1, 2, "", 5, 9], False),
        ([1, 2, "bad", 5, 9], False),
    ],
)
def test_rows_in_time_order_are_not_sorted_and_have_the_same_places(
    tmp_path: Path, starts: list[Any], in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [T + start if isinstance(start, int) else start for start in starts]
    # A failure need not have a start.
    rows = [f"{at},{place if at else ''},{str(bool(at)).lower()}" for place, at in enumerate(times)]
    path = written(tmp_path / "a.csv", rows)
    found = []

    def noted(counted: Any) -> bool:
        found.append(_in_order(counted))
        return found[-1]

    tables = []
    for how in (noted, lambda _: False):
        monkeypatch.setattr("tare.samples.read.sort_by_time._in_order", how)
        (run, _) = open_files({"a": [path], "b": [path]}, options=OPTIONS).runs
        assert isinstance(run.requests, Requests)
        tables.append(
            run.requests.table.select("row", "place", "start_ns").order_by("place").rows()
        )
    assert any(found) == in_order
    assert tables[0] == tables[1]
