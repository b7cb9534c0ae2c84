# SPDX-License-Identifier: Apache-2.0
"""Units of times, and texts that are times or none."""

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.samples import ImportOptions, read_load_output
from tare.samples.formats.formats_test import T, read
from tare.samples.formats.times import NANOSECONDS, moment, moment_of_text, nanoseconds, of_text
from tare.samples.sql.engine import connect
from tare.samples.sql.table import Database, Table, fresh_name

NOON = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()) * 10**9
MINUTE = 60 * 10**9


def starts(path: Path, rows: list[str], unit: str | None = None, column: str = "at") -> list[int]:
    """The start times that are read from a column of texts, without those that are none."""
    path.write_text(f"{column},took_ns\n" + "".join(f'"{row}",1\n' for row in rows))
    found = read_load_output(
        path, options=ImportOptions({"start": column, "duration": "took_ns"}, unit)
    )
    return [int(start) for start in found["start_ns"].to_pylist()]


@pytest.mark.parametrize(
    ("offset", "minutes"),
    [
        ("", 0), ("Z", 0), (" UTC", 0), ("+01", 60), ("+01:00", 60), ("+0130", 90),
        (" +01:30", 90), ("-03", -180), ("-00:30", -30), ("-09:30", -570),
    ],
)  # fmt: skip
def test_offsets_of_iso_8601(tmp_path: Path, offset: str, minutes: int) -> None:
    (found,) = starts(tmp_path / "a.csv", [f"2026-01-31T12:00:00.000000001{offset}"], "s")
    assert found == NOON - minutes * MINUTE + 1


@pytest.mark.parametrize("text", [" Europe/Berlin", " CET", "+01:00:30", " EST"])
def test_what_is_no_known_offset_is_no_time(tmp_path: Path, text: str) -> None:
    assert starts(tmp_path / "a.csv", [f"2026-01-31 12:00:00{text}", f"{T}"], "s") == [T * 10**9]


@pytest.mark.parametrize("odd", ["1e20", "9" * 23, "1e400", "-1e300", "9999-12-31T00:00:00Z"])
def test_a_time_beyond_the_engines_numbers_stops_no_file(tmp_path: Path, odd: str) -> None:
    found = read(tmp_path, "a.csv", f"start_time,response_time\n{odd},1\n{T},2\n{T},{odd}\n")
    assert found["duration_ns"] == [2_000_000]
    assert found["warnings"] == ["2 rows without a usable time (place 1, 3): left out"]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "us"])
def test_a_timestamp_beyond_the_engines_numbers_stops_no_file(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    last = datetime(9999, 12, 31, tzinfo=UTC if zone else None)
    fine = datetime(2026, 1, 31, 12, tzinfo=UTC if zone else None)
    path = tmp_path / "a.parquet"
    table = pa.table({"at": pa.array([last, fine], pa.timestamp(unit, zone)), "took_ns": [1, 2]})
    pq.write_table(table, path)
    found = read_load_output(path, options=ImportOptions({"start": "at", "duration": "took_ns"}))
    assert found["start_ns"].to_pylist() == [NOON]


@pytest.mark.parametrize("begin", [1_500_000_000_000, 5_000_000_000_000, T * 10**6])
def test_a_unit_in_the_name_counts_before_a_numbers_size(tmp_path: Path, begin: int) -> None:
    """Monotonic nanoseconds of 25 minutes have the size of Unix milliseconds."""
    path = tmp_path / "a.csv"
    path.write_text(f"t0_ns,t1_ns\n{begin},{begin + 500}\n")
    found = read_load_output(path, options=ImportOptions({"start": "t0_ns", "end": "t1_ns"}))
    assert found["duration_ns"].to_pylist() == [500]
    assert found["start_ns"].to_pylist() == [begin]
    # Without a duration, --unit can be for nothing but the times.
    path.write_text(f"t0,t1\n{begin},{begin + 500}\n")
    found = read_load_output(path, options=ImportOptions({"start": "t0", "end": "t1"}, "ns"))
    assert found["duration_ns"].to_pylist() == [500]


def test_only_a_present_day_time_tells_its_unit(tmp_path: Path) -> None:
    rows = [str(T), str(T * 10**3), str(T * 10**6), str(T * 10**9)]
    assert starts(tmp_path / "a.csv", rows, "us") == [T * 10**9] * 4
    assert starts(tmp_path / "a.csv", ["1100000000000"], "ns") == [1_100_000_000_000]


ODD = [
    *("", ".", "-", "e", "1.", ".5", "-.5", "+1", "1e5", "1e-5", " 1 ", "1_000", "0x10", "0X1F"),
    *("inf", "nan", "1\n", "1 2", "0.0000000005", "0.00000000049999999999", "9223372036.8547758"),
    *("1.000000000499999", "1.0000000004999999", "-0.9999999995", "9" * 19, "9" * 25),
]


def texts_of(backend: Database, texts: list[str]) -> Table:
    rows = pa.table({"row": range(len(texts)), "text": texts})
    return backend.create_table(fresh_name("texts"), rows)


@pytest.mark.parametrize("unit", NANOSECONDS)
def test_texts_are_the_same_numbers_by_the_quick_way(unit: str) -> None:
    random = Random(7)
    letters = [
        "".join(random.choices("0123456789.-+eExX _", k=random.randint(1, 10)))
        for _ in range(3_000)
    ]
    numbers = [f"{random.uniform(-1e6, 1e6):.{random.randint(0, 18)}f}" for _ in range(3_000)]
    table = texts_of(connect(), [*ODD, *letters, *numbers])
    both = table.select(
        "row", "text", quick=of_text(table.text, unit), slow=nanoseconds(table.text, unit)
    )
    different = [row for row in both.order_by("row").rows() if row["quick"] != row["slow"]]
    assert not different


@pytest.mark.parametrize(
    "column",
    [
        [f"{T}.25", f"{T + 9}.000000001"],
        [f"{T}000.5"],
        [f"{T}", f"{T}000000"],
        [f"{T}", "nan"],
        [f"{T}", "nothing"],
        [f"{T}", "2026-01-31"],
        [f"{T}", "1e-5"],
        ["12.5", "13"],
        ["2026/01/31 12:00:00+01:00"],
        [],
    ],
)
def test_moments_are_the_same_after_a_look_at_all(column: list[str]) -> None:
    table = texts_of(connect(), column)
    both = table.select(
        "row", quick=moment_of_text(table.text, "ms"), slow=moment(table.text, "ms")
    )
    found = both.order_by("row").rows()
    assert [row["quick"] for row in found] == [row["slow"] for row in found]
