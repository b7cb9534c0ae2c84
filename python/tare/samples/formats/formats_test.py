# SPDX-License-Identifier: Apache-2.0
"""Every format: what is read, and that nothing odd about a file goes unsaid."""

import gzip
import re
from collections.abc import Callable
from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import FORMATS, read_files, read_load_output
from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.formats.times import NANOSECONDS
from tare.samples.read.foreign_files import open_files

T = 1_700_000_000
JTL = """timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes
1700000000000,12,GET /,200,OK,"group 1, thread 1",true,345
1700000000020,15,GET /,500,"Internal, Server Error",group,false,11
"""
K6 = """metric_name,timestamp,metric_value,error,expected_response,status,url
http_reqs,1700000000,1.000000,,,200,http://127.0.0.1/
http_req_duration,1700000000,0.250500,,true,200,http://127.0.0.1/
http_req_waiting,1700000000,0.200000,,true,200,http://127.0.0.1/
http_req_duration,1700000001,0.310000,,false,503,http://127.0.0.1/
"""
WRK2 = """Running 10s test @ http://127.0.0.1:80/
  Latency Distribution (HdrHistogram - Recorded Latency)
  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
       1.053     0.500000            4         2.00
       1.100     0.550000            4         2.22
       9.991     1.000000            6          inf
#[Mean    =        2.747, StdDeviation   =        3.920]
#[Max     =        9.984, Total count    =            6]
----------------------------------------------------------
  Latency Distribution (HdrHistogram - Uncorrected Latency)
       0.001     1.000000           99          inf
  Non-2xx or 3xx responses: 2
"""


def read(tmp_path: Path, name: str, text: str | bytes) -> dict[str, Any]:
    """A file's requests as columns, and its warnings."""
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    table = read_load_output(path)
    columns = {column: table[column].to_pylist() for column in table.column_names}
    warnings = table.schema.metadata[b"warnings"].decode().splitlines()
    return columns | {"warnings": [line.removeprefix(f"{path}: ") for line in warnings]}


@pytest.mark.parametrize(
    "text",
    [
        f"start_time,response_time\n{T}.123456789,4.422151999960988\n{T}.5,3\n",
        f"response_time;Start_Time;name\n4.422152;{T}.123456789;x\n3;{T}.5;y\n",
        f",timestamp_ns,latency_us\n0,{T}123456789,4422.152\n1,{T}500000000,3000\n",
        f"Start (ms),Response Time (s)\r\n{T}123.456789,0.004422152\r\n{T}500,3e-3\r\n",
    ],
)
def test_locust_like_files(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, "a.csv", text)
    assert found["start_ns"] == [T * 10**9 + 123_456_789, T * 10**9 + 500_000_000]
    assert found["duration_ns"] == [4_422_152, 3_000_000]
    assert found["ok"] == [True, True]
    assert found["seq"] == [0, 1]
    assert found["source"] == ["client", "client"]
    assert found["warnings"] == []


def test_gzip_is_read_like_plain_text(tmp_path: Path) -> None:
    text = gzip.compress(f"start_time,response_time\n{T},5\n".encode())
    assert read(tmp_path, "a.csv.gz", text)["duration_ns"] == [5_000_000]


def test_bad_rows_are_counted_and_placed(tmp_path: Path) -> None:
    rows = [f"{T},5", f"{T + 1},", "x,5", f"{T + 2},-1", f"{T + 3},nan", "1,2,3,4", "7", f"{T},6"]
    found = read(tmp_path, "a.csv", "start_time,response_time\n" + "\n".join(rows) + "\n")
    assert found["duration_ns"] == [5_000_000, 6_000_000]
    (warning,) = found["warnings"]
    assert warning.startswith("6 rows without a usable time (place 2, 3, 4 …")
    assert warning.endswith("left out")


def test_texts_of_several_lines_are_no_rows(tmp_path: Path) -> None:
    rows = [f'{T}{i:03d},{i + 1},GET /,200,"line, one\n\nline ""two""\n",true' for i in range(40)]
    found = read(tmp_path, "a.jtl", "\n".join(["timeStamp,elapsed,label,code,text,success", *rows]))
    assert found["duration_ns"] == [n * 1_000_000 for n in range(1, 41)]
    assert all(found["ok"])
    assert len(found["warnings"]) == 1  # whole milliseconds


@pytest.mark.parametrize(
    ("broken", "kept", "lost"),
    [
        ({7: '"x'}, 8, 12),  # Never closed: the row stays as far as it goes, the rest is in it.
        ({7: '"x', 9: '"y"'}, 17, 3),  # Closed where the next text opens.
        ({7: '"x', 9: 'y"'}, 18, 2),
        ({7: '"x"y'}, 19, 1),
    ],
)
def test_rows_that_a_quote_swallowed_are_counted(
    tmp_path: Path, broken: dict[int, str], kept: int, lost: int
) -> None:
    rows = [f"{T}{i:03d},5,{broken.get(i, 'fine')},true" for i in range(20)]
    found = read(tmp_path, "a.jtl", "\n".join(["timeStamp,elapsed,text,success", *rows, ""]))
    assert len(found["duration_ns"]) == kept == 20 - lost
    assert f"{lost} row{'s' * (lost > 1)} without a usable time: left out" in found["warnings"]


def test_requests_that_start_before_they_were_intended_to_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"start_ns": [T, T, T], "intended_ns": [T - 1, T + 500, None]})
    path = tmp_path / "jump.arrow"
    table = table.append_column("duration_ns", pa.array([100, 100, 100]))
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)
    found = read_load_output(path)
    assert found["intended_ns"].to_pylist() == [T - 1, None]
    assert b"1 row without a usable time (place 2): left out" in found.schema.metadata[b"warnings"]


def test_rows_out_of_order_are_sorted_and_told(tmp_path: Path) -> None:
    places = [4, 0, 1, 2, 3, 9, 5, 6, 7, 8, 14, 10, 11, 12, 13]
    rows = "".join(f"{T + place},{place + 1}\n" for place in places)
    found = read(tmp_path, "a.csv", f"start_time,response_time\n{rows}")
    assert found["duration_ns"] == [n * 1_000_000 for n in range(1, 16)]
    assert found["warnings"] == [
        "3 rows out of time order (place 1, 6, 11, every 5th): sorted by start time"
    ]


def test_rows_in_the_order_of_their_ends_are_in_order(tmp_path: Path) -> None:
    """Two users: the second request starts later and ends earlier, and is written first."""
    text = f"start_time,response_time\n{T}.010,5\n{T}.000,50\n{T}.020,40\n"
    found = read(tmp_path, "a.csv", text)
    assert found["duration_ns"] == [50_000_000, 5_000_000, 40_000_000]
    assert found["warnings"] == []


def test_duplicates_stay_and_are_told(tmp_path: Path) -> None:
    text = f"start_time,response_time\n{T},5\n{T},5\n{T},6\n"
    found = read(tmp_path, "a.csv", text)
    assert found["duration_ns"] == [5_000_000, 5_000_000, 6_000_000]
    assert found["warnings"] == ["1 row equal to an earlier one in every field: kept"]


def test_jmeter(tmp_path: Path) -> None:
    found = read(tmp_path, "a.jtl", JTL)
    assert found["start_ns"] == [T * 10**9, T * 10**9 + 20_000_000]
    assert found["duration_ns"] == [12_000_000, 15_000_000]
    assert found["ok"] == [True, False]
    assert found["status"] == [200, 500]
    assert found["bytes"] == [345, 11]
    assert "whole milliseconds" in found["warnings"][0]


def test_k6(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", K6)
    assert found["duration_ns"] == [250_500, 310_000]
    assert found["start_ns"] == [T * 10**9, (T + 1) * 10**9]
    assert found["ok"] == [True, False]
    assert found["status"] == [200, 503]


def test_k6_times_finer_than_seconds_are_ends(tmp_path: Path) -> None:
    text = K6.replace("1700000000,", "1700000000500,").replace("1700000001,", "1700000001500,")
    assert read(tmp_path, "a.csv", text)["start_ns"] == [
        T * 10**9 + 500_000_000 - 250_500,
        (T + 1) * 10**9 + 500_000_000 - 310_000,
    ]


def test_wrk2_is_counted_values_without_order(tmp_path: Path) -> None:
    found = read(tmp_path, "wrk2.txt", WRK2)
    # Of six answers two were refusals, at any place.
    assert found["duration_ns"] == [921_000, *[1_053_000] * 2, 9_991_000, None, None]
    assert found["ok"] == [True] * 4 + [False] * 2
    assert "seq" not in found
    assert "2 answers other than 2xx and 3xx are among" in found["warnings"][0]
    path = tmp_path / "wrk2.txt"
    with pytest.raises(InputError, match="without an order of requests"):
        read_files({"a": [path], "b": [path]}, "a", warm_up=1)


def samples() -> pa.Table:
    return pa.table(
        {
            "condition": pa.array(["plain", "hook"] * 2).dictionary_encode(),
            "intended_ns": pa.array([T, T + 1, None, T + 3], pa.int64()),
            "start_ns": pa.array([T + 10, T + 11, T + 12, T + 13], pa.int64()),
            "duration_ns": pa.array([100, 200, 300, 400], pa.int64()),
            "ok": [True, True, True, False],
            "unknown": ["x"] * 4,
        }
    )


def write(path: Path, form: str) -> Path:
    if form == "parquet":
        pq.write_table(samples(), path)
        return path
    writer = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as file, writer(file, samples().schema) as arrow:
        for start in (0, 2):
            arrow.write_table(samples().slice(start, 2))
    return path


@pytest.mark.parametrize(
    ("form", "suffix"), [("stream", "arrow"), ("file", "arrow"), ("parquet", "parquet")]
)
def test_arrow_and_parquet(tmp_path: Path, form: str, suffix: str) -> None:
    path = write(tmp_path / f"a.{suffix}", form)
    table = read_load_output(path)
    assert table["duration_ns"].to_pylist() == [100, 200, 300, 400]
    assert table["intended_ns"].to_pylist() == [T, T + 1, None, T + 3]
    experiment = read_files({"plain": [path], "hook": [path]}, "plain")
    plain, hook = experiment.runs
    # plain: 100 ns and 10 ns late, and 300 ns without an intended start; hook's 400 ns failed.
    assert plain.summaries["mean"] == 205
    assert hook.summaries["mean"] == 210
    assert (hook.requests, hook.errors) == (2, 1)
    assert "only the requests of 'plain' were taken" in experiment.warnings[0]
    with pytest.raises(InputError, match="has the conditions hook, plain, none of them 'other'"):
        read_files({"plain": [path], "other": [path]}, "plain")


def test_a_stream_cut_short_keeps_its_whole_batches(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", "stream")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 100])
    table = read_load_output(path)
    assert table["duration_ns"].to_pylist() == [100, 200]
    assert b"in the middle of a batch" in table.schema.metadata[b"warnings"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "the file is empty"),
        ("a.csv", "a,b\n1,2\n", "no column of response times among a, b"),
        ("a.csv", f"{'x' * 99},a\n", f"among {'x' * 60}, a; expected"),
        ("a.csv", f"{','.join(f'c{n}' for n in range(999))}\n", r"c10, c11, \.\.\.; expected"),
        ("a.csv", "start_time,response_time\n", "no request could be read"),
        ("a.csv", "start_time,response_time\nx,y\n", "no request could be read from 1 row"),
        ("a.csv", f"start_time,response_time\n5,{T}\n", "from 1 row: their durations are above a"),
        ("a.jtl", "timeStamp,label\n1,2\n", "no column elapsed"),
        ("a.arrow", "nothing", "not an Arrow stream or file"),
        ("a.parquet", "nothing", "not a Parquet file"),
        ("a.csv.gz", "nothing", "no column of response times among nothing"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_load_output(tmp_path / name)


def test_formats_are_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(f"start_time,response_time\n{T},5\n")
    assert read_load_output(path, "locust")["duration_ns"].to_pylist() == [5_000_000]
    with pytest.raises(InputError, match=f"expected one of {', '.join(FORMATS)}"):
        read_load_output(path, "loadrunner")
    with pytest.raises(InputError, match="no such file"):
        read_load_output(tmp_path / "absent.csv")


def test_the_warm_up_is_the_first_requests_in_time(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"start_time,response_time\n{T + 2},3\n{T},100\n{T + 1},200\n{T + 3},5\n")
    experiment = read_files({"a": [path], "b": [path]}, "a", warm_up=2)
    assert experiment.runs[0].summaries["mean"] == 4_000_000
    assert experiment.runs[0].requests == 2
    with pytest.raises(InputError, match="all of them within the warm-up of 4"):
        read_files({"a": [path], "b": [path]}, "a", warm_up=4)


def test_the_published_test_drops_requests_not_rows(tmp_path: Path) -> None:
    """Rows of other metrics or conditions between the requests are no warm-up."""
    k6 = tmp_path / "k6.csv"
    k6.write_text(K6.splitlines()[0] + "\n" + "".join(
        f"http_reqs,{T},1,,,200,u\nhttp_req_duration,{T},{i},,true,200,u\n" for i in range(1, 11)
    ))  # fmt: skip
    mixed = tmp_path / "mixed.parquet"
    columns = {"condition": ["a", "b"] * 10, "start_ns": range(20), "duration_ns": range(20)}
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), mixed)
    files = open_files({"a": [k6], "b": [mixed]}, warm_up=4)
    assert files.durations("a").tolist() == [i * 1_000_000 for i in range(5, 11)]
    assert files.durations("b").tolist() == [9, 11, 13, 15, 17, 19]


def test_one_warm_up_for_all_runs_is_found(tmp_path: Path) -> None:
    slow, steady = tmp_path / "slow.csv", tmp_path / "steady.csv"
    for path, first in ((slow, 100), (steady, 0)):
        rows = "".join(f"{T + i},{50 if i < first else 10 + i % 5}\n" for i in range(1_000))
        path.write_text(f"start_time,response_time\n{rows}")
    experiment = read_files({"a": [slow], "b": [steady]}, "a", warm_up="auto")
    assert [run.requests for run in experiment.runs] == [900, 900]
    assert "the first 100 requests of every run are left out" in experiment.warnings[-1]


def test_times_beyond_any_clock_are_no_times(tmp_path: Path) -> None:
    """Sums of such times would not fit into 64 bits."""
    huge = f"9223372036,9223372036000\n{T},9e15\n9e9,1\n"
    found = read(tmp_path, "huge.csv", f"start_time,response_time\n{T},1\n{huge}")
    assert found["duration_ns"] == [1_000_000]
    assert found["warnings"] == ["3 rows without a usable time (place 2, 3, 4): left out"]
    path = tmp_path / "huge.arrow"
    columns = {"duration_ns": [1, 1], "start_ns": [2, 2**62], "intended_ns": [2, -(2**63)]}
    table = pa.table(columns)
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)
    assert read_load_output(path)["start_ns"].to_pylist() == [2]


def test_a_file_is_unpacked_by_what_it_is_not_by_its_name(tmp_path: Path) -> None:
    text = f"start_time,response_time\n{T},1\n".encode()
    assert read(tmp_path, "unpacked.csv.gz", text)["duration_ns"] == [1_000_000]
    assert read(tmp_path, "packed.csv", gzip.compress(text))["duration_ns"] == [1_000_000]


def test_columns_that_are_null_throughout_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "null.arrow"
    table = pa.table({"duration_ns": [1], "error": pa.nulls(1)})
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)
    assert read_load_output(path)["duration_ns"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("mac.csv", b"start_time,response_time\r1,2\r3,4\r", "mac.csv:1: not the header"),
        ("half.csv", gzip.compress(b"start_time,response_time\n1,2\n", mtime=0)[:-9], "half.csv: "),
        ("bad.csv", b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 40, "bad.csv: cannot be read"),
        ("two.csv", b"a,b,A\n1,2,3\n", "two columns have the name 'A'"),
        ("wrk.txt", WRK2.replace("  6  ", " 9999999999 ").encode(), "more than 100,000,000"),
    ],
)
def test_files_that_are_not_what_they_seem_are_named(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as raised:
        read(tmp_path, name, content)
    assert "\n" not in str(raised.value)


def write_arrow(folder: Path, table: pa.Table) -> Path:
    path = folder / "table.arrow"
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)
    return path


def write_parquet(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, path := folder / "table.parquet")
    return path


@pytest.mark.parametrize("write", [write_arrow, write_parquet])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("duration_ns", NOTHING),
        ("took", ImportOptions({"duration": "took"})),
        ("took", ImportOptions({"duration": "took"}, unit="s")),
        ("took_s", ImportOptions({"duration": "took_s"})),
    ],
)
def test_the_unit_of_a_duration_is_that_of_its_type(
    tmp_path: Path,
    write: Callable[[Path, pa.Table], Path],
    unit: str,
    name: str,
    options: ImportOptions,
) -> None:
    table = pa.table({name: pa.array([7, 3], pa.duration(unit))})
    found = read_load_output(write(tmp_path, table), options=options)
    size = NANOSECONDS[unit]
    assert found["duration_ns"].to_pylist() == [7 * size, 3 * size]


@pytest.mark.parametrize("write", [write_arrow, write_parquet])
def test_columns_of_types_that_are_no_numbers_are_named(
    tmp_path: Path, write: Callable[[Path, pa.Table], Path]
) -> None:
    table = pa.table({"duration_ns": pa.array([time(1)], pa.time64("us"))})
    with pytest.raises(InputError, match="column 'duration_ns' has the type time"):
        read_load_output(write(tmp_path, table))
