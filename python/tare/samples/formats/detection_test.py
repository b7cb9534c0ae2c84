# SPDX-License-Identifier: Apache-2.0
"""Formats are told by what stands where the format has it, never by what a row holds."""

import gzip
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.samples import read_load_output
from tare.samples.formats import detect
from tare.samples.formats.formats_test import WRK2, T
from tare.samples.formats.formats_test import read as read_text
from tare.samples.formats.tool_formats_test import GATLING, K6


def found(tmp_path: Path, text: str) -> str:
    path = tmp_path / "file"
    path.write_text(text)
    return detect(path)


@pytest.mark.parametrize(
    "sign",
    ["timeStamp", "metric_name", "Latency Distribution", "request-start,DNS", '""traceID""'],
)
def test_a_url_is_no_sign_of_a_format(tmp_path: Path, sign: str) -> None:
    text = f'start_time,response_time,url\n{T},5,"/a?{sign}=1"\n'
    assert found(tmp_path, text) == "locust"
    assert read_text(tmp_path, "a.csv", text)["duration_ns"] == [5_000_000]


def test_a_log_of_a_simulation_with_assertions(tmp_path: Path) -> None:
    text = f"ASSERTION\tAAECAAIBAAAA\n{GATLING}"
    assert found(tmp_path, text) == "gatling"
    assert read_text(tmp_path, "simulation.log", text)["duration_ns"] == [12_000_000, 15_000_000]


def test_lines_of_k6_without_those_of_its_metrics(tmp_path: Path) -> None:
    points = "".join(line for line in K6.splitlines(keepends=True) if '"Point"' in line)
    assert found(tmp_path, points) == "k6-json"
    assert found(tmp_path, points.replace(":", ": ")) == "k6-json"


def test_a_byte_order_mark_hides_no_sign(tmp_path: Path) -> None:
    assert found(tmp_path, "\ufefftimeStamp,elapsed\n1,2\n") == "jmeter"
    assert found(tmp_path, '\ufeff{"resourceSpans": []}') == "otlp"


def test_wrk2_packed(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(WRK2.encode()))
    assert read_load_output(tmp_path / "a.gz").num_rows == 6


def test_a_cut_table_of_wrk2_has_no_tail(tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_text(WRK2[: WRK2.index("       9.991")])
    with pytest.raises(InputError, match=r"cut\.txt: its percentile table breaks off"):
        read_load_output(tmp_path / "cut.txt")


def test_requests_that_wrk2_lost_have_failed(tmp_path: Path) -> None:
    lost = "  Socket errors: connect 0, read 3, write 0, timeout 4\n"
    found = read_text(tmp_path, "a.txt", WRK2 + lost)
    assert found["ok"].count(False) == 2 + 7
    assert found["ok"].count(True) == 4
