# SPDX-License-Identifier: Apache-2.0
"""CSV as tools and editors really write it: encodings and ends of lines."""

import gzip
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.samples import ImportOptions, read_load_output
from tare.samples.formats.formats_test import JTL, T, read

SLOW = f"timeStamp,elapsed,label,success\n{T}000,10,Start,true\n{T}020,100,Größe,true\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_any_eight_bit_encoding_are_kept(
    tmp_path: Path, encoding: str, packed: bool
) -> None:
    text = (SLOW.replace("Start", "“Start”") if encoding == "cp1252" else SLOW).encode(encoding)
    found = read(tmp_path, "a.jtl", gzip.compress(text) if packed else text)
    assert found["duration_ns"] == [10_000_000, 100_000_000]
    assert not any("left out" in line for line in found["warnings"])


def test_texts_that_are_not_utf_8_are_read_as_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("größe,span\n1,é\n".encode("latin-1") + "2,é\n".encode())
    found = read_load_output(
        path, options=ImportOptions({"duration": "größe", "span": "span"}, "ns")
    )
    assert found["span"].to_pylist() == ["é", "é"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_with_a_way_out(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(InputError, match=r"a\.csv: is UTF-16.*Set-Content -Encoding utf8"):
        read(tmp_path, "a.csv", ("\ufeff" + JTL).encode(encoding))


@pytest.mark.parametrize("ends", [("\r\n", "\n", "\n"), ("\n", "\r\n", "\n"), ("\n", "\n", "\r\n")])
def test_lines_may_end_in_different_ways(tmp_path: Path, ends: tuple[str, ...]) -> None:
    rows = ("start_time,response_time", f"{T},5", f"{T + 1},6")
    text = "".join(row + end for row, end in zip(rows, ends, strict=True))
    found = read(tmp_path, "a.csv", text)
    assert found["duration_ns"] == [5_000_000, 6_000_000]
    assert found["warnings"] == []


def test_a_carriage_return_inside_of_a_line_costs_no_other_row(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", "latency_ms,text\n1,50 %\r100 %\n2,x\r\r\n3\r4,y\n")
    assert found["duration_ns"] == [1_000_000, 2_000_000]
    assert found["warnings"] == ["1 row without a usable time (place 3): left out"]


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.csv: is not text; expected CSV"):
        read(tmp_path, "a.csv", b"\x13\xcb\x0fT\xb8g\x95\x00,\xb2\x9d\x01\n1,2\n")
