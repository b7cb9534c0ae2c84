# SPDX-License-Identifier: Apache-2.0
"""Tables of any column names and units."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import ImportOptions, parse_columns, read_load_output

T = 1_700_000_000
CSV = "when,took,what,fine\n{0},250,GET /,yes\n{1},500,GET /,no\n"


def test_csv_of_any_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV.format(f"{T}.000000001", "2023-11-14T22:13:21Z") + "x,1,a,yes\n")
    columns = parse_columns("start=when, duration=took,span=what,ok=fine")
    found = read_load_output(path, options=ImportOptions(columns, "us"))
    assert found["duration_ns"].to_pylist() == [250_000, 500_000]
    assert found["start_ns"].to_pylist() == [T * 10**9 + 1, (T + 1) * 10**9]
    assert found["span"].to_pylist() == ["GET /", "GET /"]
    assert found["ok"].to_pylist() == [True, False]
    assert b"1 row without a usable time (place 3)" in found.schema.metadata[b"warnings"]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_parquet_and_arrow_of_any_columns(tmp_path: Path, form: str) -> None:
    zoned = pa.timestamp("us", "Europe/Berlin")
    begin = datetime(2023, 11, 14, 22, 13, 20, 5, UTC)
    table = pa.table(
        {
            "begin": pa.array([begin, begin + timedelta(seconds=1)], zoned),
            "naive": pa.array([T * 10**9 + 7, T * 10**9 + 8], pa.timestamp("ns")),
            "took_ms": [0.25, 1.5],
            "code": pa.array([200, 503], pa.int16()),
        }
    )  # fmt: skip
    path = tmp_path / f"a.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    options = ImportOptions({"start": "begin", "duration": "took_ms", "status": "code"}, "s")
    found = read_load_output(path, options=options)
    assert found["start_ns"].to_pylist() == [T * 10**9 + 5_000, (T + 1) * 10**9 + 5_000]
    assert found["duration_ns"].to_pylist() == [250_000, 1_500_000]  # the name's unit counts
    assert found["ok"].to_pylist() == [True, False]
    naive = read_load_output(
        path, options=ImportOptions({"start": "naive", "duration": "code"}, "ns")
    )
    assert naive["start_ns"].to_pylist() == [T * 10**9 + 7, T * 10**9 + 8]
    assert naive["duration_ns"].to_pylist() == [200, 503]


def test_the_end_will_do_for_a_duration(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"from,to\n{T}000,{T}012\n{T}020,{T}019\n")
    found = read_load_output(path, options=ImportOptions({"start": "from", "end": "to"}, "ms"))
    assert found["duration_ns"].to_pylist() == [12_000_000]
    assert found["start_ns"].to_pylist() == [T * 10**9]
    assert b"1 row without a usable time (place 2)" in found.schema.metadata[b"warnings"]


@pytest.mark.parametrize(
    ("unit", "expected"), [("ns", 5), ("us", 5_000), ("ms", 5_000_000), ("s", 5 * 10**9)]
)
def test_a_unit_for_csv_that_names_none(tmp_path: Path, unit: str, expected: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"start_time,response_time\n{T},5\n")
    found = read_load_output(path, options=ImportOptions(unit=unit))
    assert found["duration_ns"].to_pylist() == [expected]
    assert found["start_ns"].to_pylist() == [T * 10**9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"duration": "absent"}, "unit": "s"}, "one of when, took, what, fine$"),
        ({"columns": {"duration": "took"}}, "no unit of column 'took'; add --unit"),
        ({"columns": {"duration": "took", "ok": "what"}, "unit": "s"}, "'GET /'; expected true"),
        ({"columns": {"start": "when"}}, "no duration; add duration=COLUMN"),
        ({"columns": {"end": "when"}}, "end=COLUMN needs start=COLUMN"),
        ({"columns": {"latency": "took"}}, "--columns: found 'latency', expected some of start, "),
        ({"unit": "min"}, "--unit: found 'min', expected one of ns, us, ms, s"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV.format(T, T + 1))
    with pytest.raises(InputError, match=message):
        read_load_output(path, options=ImportOptions(**options))  # type: ignore[arg-type]


def test_a_column_may_be_called_row(tmp_path: Path) -> None:
    options = ImportOptions({"duration": "took_ns", "span": "row"})
    table = tmp_path / "a.parquet"
    pq.write_table(pa.table({"row": ["pay", "ship"], "took_ns": [1, 2]}), table)
    text = tmp_path / "a.csv"
    text.write_text("row,took_ns\npay,1\nship,2\n")
    for path in (table, text):
        found = read_load_output(path, options=options)
        assert found["span"].to_pylist() == ["pay", "ship"]


@pytest.mark.parametrize("text", ["start", "start=", "=x", "start=a,start=b", ""])
def test_columns_are_roles_with_names(text: str) -> None:
    with pytest.raises(InputError, match="--columns: "):
        parse_columns(text)


def test_formats_that_state_their_unit_take_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("metric_name,timestamp,metric_value\nhttp_req_duration,1,1\n")
    with pytest.raises(InputError, match="format k6 states its unit; leave out --unit"):
        read_load_output(path, options=ImportOptions(unit="s"))
    table = tmp_path / "a.parquet"
    pq.write_table(pa.table({"duration_ns": [1]}), table)
    with pytest.raises(InputError, match="--unit goes with --columns"):
        read_load_output(table, options=ImportOptions(unit="s"))
