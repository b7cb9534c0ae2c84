# SPDX-License-Identifier: Apache-2.0
"""A program that is written for Cloudprofiler, and the files that Cloudprofiler would have made.

Names and layouts are those of the notes in docs/decisions/0098.
"""

import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import INCLUDE, LIBRARIES, PROGRAMS, STRICT, needs
from tests.log.lzo import unpack
from tests.once import OUT, compiled

# More than are compressed as one.
EVENTS = 70_000
NAME = re.compile(r":(?P<ip>[\d.]+):(?P<pid>\d+):(?P<tid>\d+):ch(?P<number>\d+):(?P<letter>\w):")
TUPLES = [number * number for number in range(EVENTS)]


@dataclass(frozen=True)
class Files:
    """What was exported, by the names of channels, and what the program said."""

    folder: Path
    log: Path
    said: str

    def named(self, letter: str, name: str) -> Path:
        (file,) = self.folder.glob(f":*:{letter}:{name}.txt")
        return file

    def of(self, letter: str, name: str) -> bytes:
        return self.named(letter, name).read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    needs("c++")
    folder = tmp_path_factory.mktemp("compat")
    log = folder / "events.log"
    flags = ["c++", "-std=c++17", *STRICT, f"-I{INCLUDE}/compat"]
    libraries = [f"{LIBRARIES}/libtare_log.a", "-o", OUT]
    program = compiled("compat", *flags, PROGRAMS / "compat.cpp", *libraries)
    run = [TARE_LOG, "run", "--out", str(log), "--", str(program), str(EVENTS)]
    said = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    made = folder / "files"
    export = [TARE_LOG, "export", str(log), "--to", "cloudprofiler", "--out", str(made)]
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
    return Files(made, log, said)


def test_calls_return_what_they_do_there(files: Files) -> None:
    """isOpen; x; y; isOpen after the poison pill; a bad parameter, which closes; no channel."""
    assert files.said == "1 0 0 0 -1 0 0\n"


@pytest.mark.exhaustive
def test_files_are_named_by_address_process_thread_number_and_format(files: Files) -> None:
    rows = dump(files.log)
    (pid,) = {row.pid for row in rows}
    other = next(row.tid for row in rows if row.channel == "ascii (2)")
    found = sorted(
        (int(match["number"]), match["letter"], path.name[match.end() : -4], int(match["tid"]))
        for path in files.folder.iterdir()
        if (match := NAME.match(path.name)) and int(match["pid"]) == pid
    )
    formats = [
        "ascii",
        "ascii tsc",
        "binary",
        "binary tsc",
        "zstd",
        "zstd tsc",
        "lzo1x",
        "lzo1x tsc",
    ]
    assert found == [
        *((n, "aibyzdlx"[n], name, pid) for n, name in enumerate(formats)),
        (8, "a", "tenth", pid),
        (9, "b", "some of many", pid),
        (10, "b", "none", pid),
        (11, "a", "ends", pid),
        (12, "b", "middle", pid),
        (13, "a", "ascii", other),
        (14, "b", "a_b", other),
    ]
    assert len(list(files.folder.iterdir())) == len(found)


def blocks(content: bytes) -> list[bytes]:
    """The payloads behind their sizes."""
    found = []
    while content:
        (size,) = struct.unpack_from("<i", content)
        assert 0 < size <= len(content) - 4
        found.append(content[4 : 4 + size])
        content = content[4 + size :]
    return found


def zstd(block: bytes) -> bytes:
    content: bytes = pa.input_stream(pa.BufferReader(block), compression="zstd").read()
    return content


def check(records: list[tuple[int, ...]], is_short: bool) -> None:
    assert [record[0] for record in records] == TUPLES
    ticks = [record[1 if is_short else 3] for record in records]
    assert ticks == sorted(ticks)
    if not is_short:
        times = [seconds * 10**9 + rest for _, seconds, rest, _, _ in records]
        assert times == sorted(times)
        assert all(0 <= record[2] < 10**9 and record[4] == 0 for record in records)


@pytest.mark.parametrize(
    ("letter", "name", "unpacked"),
    [
        ("z", "zstd", zstd),
        ("d", "zstd tsc", zstd),
        ("l", "lzo1x", unpack),
        ("x", "lzo1x tsc", unpack),
    ],
)
def test_compressed_files_are_blocks_behind_their_size(
    letter: str, name: str, unpacked: Callable[[bytes], bytes], files: Files
) -> None:
    parts = blocks(files.of(letter, name))
    assert len(parts) == 2
    is_short = name.endswith("tsc")
    content = b"".join(unpacked(part) for part in parts)
    assert len(content) == EVENTS * (16 if is_short else 40)
    check(list(struct.iter_unpack("<qQ" if is_short else "<qqqQq", content)), is_short)


@pytest.mark.parametrize(("letter", "name"), [("b", "binary"), ("y", "binary tsc")])
def test_binary_files_are_records(letter: str, name: str, files: Files) -> None:
    is_short = letter == "y"
    content = files.of(letter, name)
    check(list(struct.iter_unpack("<qQ" if is_short else "<qqqQq", content)), is_short)


def test_text_files_are_lines(files: Files) -> None:
    first = next(path for path in files.folder.iterdir() if ":ch0:a:" in path.name)
    records = [tuple(map(int, line.split(", "))) for line in first.read_text().splitlines()]
    check(records, is_short=False)
    short = files.of("i", "ascii tsc").decode().splitlines()
    assert [len(line.split(", ")) for line in short] == [5, *[3] * (EVENTS - 1)]
    assert [int(line.split(", ")[0]) for line in short] == TUPLES


def test_handlers_leave_out_what_they_leave_out_there(files: Files) -> None:
    tenth = [line.split(b", ") for line in files.of("a", "tenth").splitlines()]
    assert [int(line[0]) for line in tenth] == list(range(0, 3000, 10))
    assert {len(line) for line in tenth} == {4}
    some = [record[0] for record in struct.iter_unpack("<qqqQq", files.of("b", "some of many"))]
    assert some == [number for number in range(3000) if number & 1023 < 3]
    assert files.of("b", "none") == b""
    ends = [line.split(b", ") for line in files.of("a", "ends").splitlines()]
    assert [(int(line[0]), len(line)) for line in ends] == [(0, 4), (2999, 4)]
    middle = [record[0] for record in struct.iter_unpack("<qqqQq", files.of("b", "middle"))]
    assert middle == list(range(2, 3000, 5))
    again = next(path for path in files.folder.iterdir() if ":ch13:a:" in path.name)
    assert again.read_text().startswith("7, ")
    assert [record[0] for record in struct.iter_unpack("<qqqQq", files.of("b", "a_b"))] == [8]


def test_a_file_of_another_program_is_exported_too(tmp_path: Path) -> None:
    needs("cc")
    program, log, made = tmp_path / "linked", tmp_path / "events.log", tmp_path / "files"
    flags = ["cc", "-std=c11", f"-I{INCLUDE}", str(PROGRAMS / "linked.c")]
    subprocess.run([*flags, f"{LIBRARIES}/libtare_log.a", "-o", str(program)], check=True)
    subprocess.run([TARE_LOG, "run", "--out", str(log), "--", str(program)], check=True)
    export = [TARE_LOG, "export", str(log), "--to", "cloudprofiler", "--out", str(made)]
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
    tuples = {
        path.name.rpartition(":")[2]: [
            record[0] for record in struct.iter_unpack("<qqqQq", path.read_bytes())
        ]
        for path in made.iterdir()
    }
    # Texts are no tuples.
    assert tuples == {"numbers.txt": [42, -1], "work>.txt": [7], "work<.txt": [7]}


def test_a_folder_with_something_in_it_is_refused(files: Files) -> None:
    export = [
        TARE_LOG,
        "export",
        str(files.log),
        "--to",
        "cloudprofiler",
        "--out",
        str(files.folder),
    ]
    done = subprocess.run(export, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "not empty" in done.stderr
