# SPDX-License-Identifier: Apache-2.0
"""Small files that unpack to much: what is held of them does not grow with what they unpack to."""

import gzip
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tare.errors import InputError
from tare.samples import ImportOptions, read_files, read_load_output
from tare.samples.formats import bins, read
from tare.samples.formats.damaged_test import hdr as log
from tare.samples.formats.damaged_test import interval
from tare.samples.formats.formats_test import T
from tare.samples.formats.lines import lines
from tare.samples.sql.engine import connect

MEBIBYTE = 1 << 20
MILLISECONDS = ImportOptions(unit="ms")


def held(work: Callable[[], object]) -> int:
    """The most bytes that Python and NumPy hold at once during `work`."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_lines_are_those_of_the_file_without_the_long_ones() -> None:
    generator = Random(1)
    for _ in range(2_000):
        text = bytes(generator.choices(b"ab\n\r", k=generator.randrange(40)))
        longest = generator.randrange(1, 12)
        expected = [line if len(line) <= longest else None for line in BytesIO(text)]
        assert [*lines(BytesIO(text), longest)] == expected


def test_a_line_without_end_is_lost_and_not_held(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    long = b"1," + b"1" * (64 * MEBIBYTE)
    rows = f"{T},5\n".encode(), f"{T + 1},6\n".encode()
    path.write_bytes(
        gzip.compress(b"start_time,response_time\n%s%s\n%s" % (rows[0], long, rows[1]))
    )
    del long
    read(connect(), path)  # loads what is imported late
    backend = connect()
    assert held(lambda: read(backend, path)) < 16 * MEBIBYTE
    table = read_load_output(path)
    assert table["duration_ns"].to_pylist() == [5_000_000, 6_000_000]
    assert b"1 row without a usable time: left out" in table.schema.metadata[b"warnings"]


def test_what_no_run_of_wrk2_prints_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"  Detailed Percentile spectrum:\n" + b"x\n" * (32 * MEBIBYTE)))
    with pytest.raises(InputError, match=r"a\.txt\.gz: is larger than 4 MiB"):
        read(connect(), path)


def test_a_summary_of_any_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"RequestedQPS": [' + b"[]," * (8 * MEBIBYTE) + b"[]]}"))
    with pytest.raises(InputError, match=r"a\.json\.gz: is larger than 16 MiB"):
        read(connect(), path)


def test_a_tag_of_xml_without_end_is_not_looked_through_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "a.xml.gz"
    sample = f'<httpSample t="12" ts="{T}000" s="true" lb="x" rc="200" by="345"/>\n'
    text = f'<testResults version="1.2">\n{sample}<httpSample t="'.encode() + b"1" * (8 * MEBIBYTE)
    path.write_bytes(gzip.compress(text))
    table = read_load_output(path)
    assert table["duration_ns"].to_pylist() == [12_000_000]
    told = table.schema.metadata[b"warnings"]
    assert b"a tag has more than 1 MiB): what follows was not read" in told


def test_bins_are_those_of_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    expected: dict[str, dict[tuple[int, int], int]] = {}
    # So that they are added up on the way.
    monkeypatch.setattr(bins, "FEW", 200)
    found = bins.Bins(1_000)
    for number in range(300):
        name = "ab"[number % 2]
        low = np.unique(generator.integers(0, 50, generator.integers(0, 9)))
        high = low + number % 3 // 2
        counts = generator.integers(1, 9, low.size)
        found.add(name, np.stack([low, high, counts]))
        sums = expected.setdefault(name, {})
        for place in zip(low.tolist(), high.tolist(), counts.tolist(), strict=True):
            sums[place[:2]] = sums.get(place[:2], 0) + place[2]
    for name, (low, high, counts) in found.sums().items():
        listed = zip(low.tolist(), high.tolist(), counts.tolist(), strict=True)
        assert [((a, b), c) for a, b, c in listed] == sorted(expected[name].items())


def test_a_bin_never_counts_beyond_64_bits() -> None:
    found = bins.Bins(10)
    for _ in range(100):
        found.add("a", np.array([[1], [1], [bins.LARGEST]]))
    assert found.sums()["a"].tolist() == [[1], [1], [bins.LARGEST]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (log(f"0,1,2,{interval(bytes([2]) * 2_000_000, digits=5)}"), "an interval of more than"),
        (log(f"0,1,2,{interval(bytes(8 * MEBIBYTE))}"), "an interval of more than"),
        (
            log(*[f"Tag={n},0,1,2,{interval(bytes([2]) * 400_000, 5)}" for n in range(3)]),
            "more than 1,048,576 bins with requests",
        ),
        (log(*[f"Tag={n},0,1,2,{interval(bytes([2]))}" for n in range(1_500)]), "1,000 tags"),
    ],
    ids=["bins", "bytes", "tags and bins", "tags"],
)
def test_an_hdr_log_beyond_its_limits_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.hdr"
    path.write_text(text)

    def refused() -> None:
        with pytest.raises(InputError, match=message):
            read_files({"a": [path], "b": [path]}, "a", options=MILLISECONDS)

    assert held(refused) < 256 * MEBIBYTE


@pytest.mark.exhaustive
def test_many_intervals_of_an_hdr_log_take_no_more_memory(tmp_path: Path) -> None:
    line = f"0,1,2,{interval(bytes([2]) * 1_000)}"
    path = tmp_path / "a.hdr"
    path.write_text(log(*[line] * 6_000))
    backend = connect()
    assert held(lambda: read(backend, path, options=MILLISECONDS)) < 32 * MEBIBYTE
