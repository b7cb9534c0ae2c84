# SPDX-License-Identifier: Apache-2.0
"""Files of strangers: whatever numbers they have, they are read or refused in one line."""

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from tare.errors import InputError
from tare.samples import Asked, read_files, read_load_output
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
    asked = Asked(unit="ms") if text.startswith("#") else Asked()
    with pytest.raises(InputError, match=message) as raised:
        read_files({"a": [path], "b": [path]}, "a", asked=asked)
    said = str(raised.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert len(said) < len(str(path)) + 400


@pytest.mark.parametrize("time", ["1.2.3", ".", HUGE])
def test_an_interval_without_a_time_is_left_out(tmp_path: Path, time: str) -> None:
    path = tmp_path / "a.hdr"
    path.write_text(hdr(SOUND, f"{time},1.0,2.0,{COUNTS}", start="1.7.0"))
    found = read_files({"a": [path], "b": [path]}, "a", asked=Asked(unit="ms"))
    assert found.runs[0].requests == 10
    assert "could not be read: left out" in found.warnings[0]


def test_failures_are_not_listed_in_memory_without_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(statuses(str(10**10), "errorDistribution"))
    with pytest.raises(InputError, match="too many to list them"):
        read_load_output(path)
