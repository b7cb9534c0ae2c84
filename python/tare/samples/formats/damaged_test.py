# SPDX-License-Identifier: Apache-2.0
"""Files of strangers: whatever numbers they have, they are read or refused in one line."""

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import ImportOptions, read_files, read_load_output
from tare.samples.formats.counted_formats_test import fortio, oha

HUGE = "9" * 400
LONG = "9" * 5_000
"""More digits than Python turns into a number."""


def interval(counts: bytes, digits: int = 3, least: int = 1) -> str:
    """The counts of a histogram, as HdrHistogram packs them."""
    head = struct.pack(
        ">IIIIqqd", 0x1C849313, len(counts), 0, digits, least, 3_600_000_000_000, 1.0
    )
    packed = zlib.compress(head + counts, 9)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def hdr(*lines: str, start: str = "1700000000.0") -> str:
    head = f"#[Histogram log format version 1.3]\n#[StartTime: {start} (seconds since epoch)]\n"
    return head + "".join(f"{line}\n" for line in lines)


COUNTS = interval(bytes([2, 4, 6, 8]))
LARGEST_COUNT = interval(b"\xfe\xff\xff\xff\xff\xff\xff\x7f")
SOUND = f"0.1,1.0,2.0,{COUNTS}"


def bins(count: str, **more: Any) -> str:
    text = json.dumps(fortio(**more))
    return text.replace('"Count": 100', f'"Count": {count}').replace(
        '"Count": 50', f'"Count": {count}'
    )


def statuses(count: str, kind: str = "statusCodeDistribution") -> str:
    return json.dumps(oha(**{kind: {"200": "COUNT"}})).replace('"COUNT"', count)


def wrk(*lines: str) -> str:
    head = "  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount\n\n"
    return head + "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (hdr(f"{HUGE},1.0,2.0,{COUNTS}"), "no interval of 1 could be read"),
        (hdr(SOUND, start=HUGE), "numbers beyond any load test"),
        (hdr(SOUND, start="9" * 200), "times beyond 64 bits"),
        (hdr(*[f"0.1,1.0,2.0,{LARGEST_COUNT}"] * 600), "no interval of 600 could be read"),
        (bins("1" + "0" * 40), "numbers beyond any load test"),
        (bins(str(2**62)), "counts more than 100,000,000,000 requests"),
        (bins("-5"), "it is damaged"),
        (json.dumps(fortio(ActualDuration=float("inf"))), "numbers beyond any load test"),
        (json.dumps(fortio(ActualDuration=int(HUGE))), "times beyond 64 bits"),
        (statuses("1e400"), "numbers beyond any load test"),
        (statuses("1" + "0" * 30), "numbers beyond any load test"),
        (statuses("-5"), "below zero"),
        (statuses("1e400", "errorDistribution"), "numbers beyond any load test"),
        (statuses("1" + "0" * 40, "errorDistribution"), "counts more than 100,000,000,000"),
        (wrk(f"{HUGE}.0 0.5 10 2.0", "1.0 1.0 20 inf"), "numbers beyond any load test"),
        (wrk(f"1.0 0.5 {LONG} 2.0", "1.0 1.0 20 inf"), "numbers beyond any load test"),
        (wrk(f"1.0 0.5 {'9' * 30} 2.0", f"2.0 1.0 {'9' * 31} inf"), "beyond any load test"),
        (
            wrk("1.0 0.5 10 2.0", "2.0 1.0 20 inf", f"Non-2xx or 3xx responses: {LONG}"),
            "numbers beyond any load test",
        ),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_numbers_beyond_any_load_test_are_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    options = ImportOptions(unit="ms") if text.startswith("#") else ImportOptions()
    with pytest.raises(InputError, match=message) as raised:
        read_files({"a": [path], "b": [path]}, "a", options=options)
    said = str(raised.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert len(said) < len(str(path)) + 400


FARTHEST = str(2**63 - 1)


def otlp(start: str) -> str:
    span = {"name": "a", "startTimeUnixNano": start, "endTimeUnixNano": "1700000000000001000"}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"


def jaeger(*starts: int) -> str:
    spans = [{"operationName": "a", "startTime": start, "duration": 5} for start in starts]
    return json.dumps({"data": [{"traceID": "1", "spans": spans}]})


def zipkin(*starts: int) -> str:
    span = {"traceId": "1", "id": "2", "localEndpoint": {"serviceName": "a"}, "duration": 5}
    return json.dumps([span | {"timestamp": start} for start in starts])


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (otlp("1700000000000000000") + otlp(f"-{FARTHEST}"), {}),
        (jaeger(1_700_000_000_000_000, int(FARTHEST)), {}),
        (zipkin(1_700_000_000_000_000, int(FARTHEST)), {}),
        (f"start,end\n1700000000000000000,1700000000000000005\n-{FARTHEST},5\n",
         {"start": "start", "end": "end"}),
        ("RUN\ta\n" + "".join(f"REQUEST\t\ta\t{begun}\t{ended}\tOK\t \n" for begun, ended in
                          [(1_700_000_000_000, 1_700_000_000_005), (-(10**12) * 9, 9 * 10**12)]),
         {}),
        ("metric_name,timestamp,metric_value\n" + "".join(
            f"http_req_duration,{end},{took}\n"
            for end, took in [("1700000000.5", 5), ("9e9", f"-{9 * 10**12}")]), {}),
    ],
    ids=["otlp", "jaeger", "zipkin", "csv", "gatling", "k6"],
)  # fmt: skip
def test_a_row_with_a_time_too_far_away_is_left_out(
    tmp_path: Path, text: str, columns: dict[str, str]
) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    found = read_files(
        {"a": [path], "b": [path]},
        "a",
        options=ImportOptions(columns=columns, unit="ns" if columns else None),
    )
    assert found.runs[0].requests == 1
    assert any("1 row without a usable time" in warning for warning in found.warnings)


@pytest.mark.parametrize("time", ["1.2.3", ".", HUGE])
def test_an_interval_without_a_time_is_left_out(tmp_path: Path, time: str) -> None:
    path = tmp_path / "a.hdr"
    path.write_text(hdr(SOUND, f"{time},1.0,2.0,{COUNTS}", start="1.7.0"))
    found = read_files({"a": [path], "b": [path]}, "a", options=ImportOptions(unit="ms"))
    assert found.runs[0].requests == 10
    assert "could not be read: left out" in found.warnings[0]


def test_failures_are_not_listed_in_memory_without_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(statuses(str(10**10), "errorDistribution"))
    with pytest.raises(InputError, match="too many to list them"):
        read_load_output(path)


@pytest.mark.parametrize("place", [0, 4, 20])
def test_parquet_with_a_damaged_footer_is_refused_in_one_line(tmp_path: Path, place: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"duration_ns": [1, 2, 3]}), path)
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    begin = len(data) - 8 - footer + place
    data[begin : begin + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet: not a Parquet file") as raised:
        read_files({"a": [path], "b": [path]}, "a")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("encoding", ["UTF-0", "UTF-32", "x" * 1_000, "idna"])
def test_jmeter_xml_of_another_encoding_is_damaged(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.jtl"
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n<testResults version="1.2">\n'
    path.write_text(f'{head}<sample t="1" ts="1700000000000" s="true"/>\n</testResults>\n')
    with pytest.raises(InputError, match="the file breaks off or is damaged") as raised:
        read_load_output(path)
    assert "Traceback" not in str(raised.value)
