# SPDX-License-Identifier: Apache-2.0
"""Whatever a file has, readers of it end, with one line at most for each thing that is wrong."""

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump, ran
from tests.waiting import SECONDS

LENGTHS = 300
EXPORTS = ["perfetto", "chrome", "otlp", "parquet", "ctf", "cloudprofiler"]
COMMANDS = [
    ["dump"],
    ["dump", "--format", "jsonl"],
    ["stats", "--json"],
    ["top", "--once", "--json"],
    ["recover", "--out", "OUT"],
    *(["export", "--to", to, "--out", "OUT"] for to in EXPORTS),
]


@pytest.fixture(scope="module")
def whole(compiled: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Numbers, bytes, spans, losses, blocks in parts: short enough to be cut anywhere."""
    folder = tmp_path_factory.mktemp("whole")
    file = folder / "events.log"
    ran(file, compiled("payloads"))
    ran(file, compiled("codecs"), 1_000)
    ran(file, compiled("nested"), 2, 3_000, 0, "lose", TARE_LOG_RING="64K")
    return file.read_bytes()


def read(command: list[str], file: Path) -> subprocess.CompletedProcess[bytes]:
    """One of the commands on a file; checks how it ends."""
    out = file.with_name("out")
    words = [str(out) if word == "OUT" else word for word in command]
    done = subprocess.run(
        [TARE_LOG, words[0], str(file), *words[1:]],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    told = done.stderr.decode()
    assert done.returncode in (0, 2), (command, told)
    assert "panicked" not in told
    lines = told.splitlines()
    assert all(line.startswith("tare-log: ") for line in lines)
    assert len(lines) <= 3
    if done.returncode:
        # Before it: what was damaged, and which host's times could not be related.
        warnings = (" bytes are damaged", "use its own clock")
        assert all(any(known in line for known in warnings) for line in lines[:-1])
        assert not out.exists()
    assert not list(file.parent.glob(".tare*"))
    shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    return done


def lengths(data: bytes, chance: random.Random) -> Iterator[int]:
    """Where blocks begin and end, and anywhere."""
    place = 0
    while place >= 0:
        yield from (length for length in (place - 1, place, place + 1, place + 96) if length >= 0)
        place = data.find(b"TLBK", place + 1)
    while True:
        yield chance.randrange(len(data))


@pytest.mark.exhaustive
def test_a_file_cut_anywhere(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "cut.log"
    commands = cycle(COMMANDS)
    codes = set()
    for length, _ in zip(lengths(whole, random.Random(1)), range(LENGTHS), strict=False):
        file.write_bytes(whole[:length])
        codes.add(read(next(commands), file).returncode)
    assert codes == {0, 2}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_without_events(command: list[str], tmp_path: Path) -> None:
    """Nothing, something else, and a file of a program that logged nothing."""
    file = tmp_path / "events.log"
    for content in (b"", b"TLBK", b"no events\n" * 1_000, random.Random(2).randbytes(1 << 21)):
        file.write_bytes(content)
        done = read(command, file)
        assert done.returncode == 2
        assert b"of tare log" in done.stderr
    file.unlink()
    ran(file, Path("/bin/true"))
    assert read(command, file).returncode == 0


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_no_ordinary_file_is_refused(command: list[str], tmp_path: Path) -> None:
    """It is read more than once: a pipe would look empty, and a device has no end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file in (pipe, Path("/dev/zero"), tmp_path):
        words = [str(tmp_path / "out") if word == "OUT" else word for word in command]
        told = refused([words[0], file, *words[1:]])
        why = "not a regular file; save it to a file first, because it is read more than once"
        assert told == f"tare-log: {file}: {why}\n"
    assert list(tmp_path.iterdir()) == [pipe]


def test_pipes_keep_nobody(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """Not as a file of rules, nor one to write to that nobody reads; who reads it gets all."""
    pipe, file = tmp_path / "pipe", tmp_path / "events.log"
    os.mkfifo(pipe)
    for words in ([pipe], [file, "--rules", pipe], [file, "--rules", "/dev/zero"]):
        assert refused(["run", "--out", *words, "--", "true"]).count("\n") == 1
    both = os.open(pipe, os.O_RDWR)
    with (
        pipe.open("rb") as end,
        subprocess.Popen(["cat"], stdin=end, stdout=subprocess.PIPE) as reader,
    ):
        totals = ran(pipe, compiled("nested"), 2, 3_000)
        os.close(both)
        file.write_bytes(reader.communicate(timeout=SECONDS)[0])
    assert totals["events"] == len(dump(file)) > 0


def refused(words: Sequence[str | Path]) -> str:
    done = subprocess.run(
        [TARE_LOG, *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2
    return done.stderr


@pytest.mark.parametrize("seed", range(len(COMMANDS)))
def test_a_damaged_file(seed: int, whole: bytes, tmp_path: Path) -> None:
    chance = random.Random(seed)
    file = tmp_path / "damaged.log"
    for _ in range(10):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 10)):
            place = chance.randrange(len(data))
            data[place : place + chance.randrange(40)] = chance.randbytes(chance.randrange(40))
        file.write_bytes(data)
        read(COMMANDS[seed], file)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(len(COMMANDS)))
def test_damage_behind_the_checksum(seed: int, whole: bytes, tmp_path: Path) -> None:
    """Content that no writer makes, whose checksum is right."""
    chance = random.Random(seed)
    file = tmp_path / "damaged.log"
    for _ in range(10):
        data = bytearray(whole)
        for begin, end in blocks(whole):
            if chance.random() < 0.5:
                continue
            for _ in range(chance.randrange(1, 4)):
                # From the kind on, without the lengths of what is stored: 12 to 15.
                place = chance.choice([8, 10, *range(16, 96), chance.randrange(96, end - begin)])
                data[begin + place] = chance.choice([0, 1, 2, 255, chance.randrange(256)])
            data[begin + 4 : begin + 8] = struct.pack("<I", crc32c(bytes(data[begin + 8 : end])))
        file.write_bytes(data)
        read(COMMANDS[seed], file)


def test_times_that_always_fall_fill_no_folder(tmp_path: Path) -> None:
    """In the Common Trace Format, each fall begins a file."""
    file = tmp_path / "events.log"
    ran(file, Path("/bin/true"))
    layout = struct.pack("<5I12xQ", 1, 0, 0, 0, 1, 0)
    for place in range(2_000):
        times = struct.pack("<QQ", *[10**12 - 1_000 * place] * 2)
        content = layout[:32] + times[:8] + bytes(2)
        header = struct.pack("<HHIIIIIQQQ", 4, 1, 42, 42, 1, 0, 1, place, place + 1, 1)
        summed = (header + times).ljust(88, b"\0") + content
        with file.open("ab") as end:
            end.write(b"TLBK" + struct.pack("<I", crc32c(summed)) + summed)
    out = tmp_path / "out"
    words = [str(word) for word in (TARE_LOG, "export", "--to", "ctf", "--out", out, file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert "times fall back more than 1000 times" in done.stderr
    assert list(tmp_path.iterdir()) == [file]


def blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Where they begin and end (docs/formats/log.md)."""
    begin = 0
    while begin < len(data):
        (stored,) = struct.unpack_from("<I", data, begin + 12)
        yield begin, (begin := begin + 96 + stored)


def crc32c(data: bytes) -> int:
    """Castagnoli's, bytewise."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def crc_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [rest >> 1 ^ (0x82F63B78 if rest & 1 else 0) for rest in table]
    return table


CRC_TABLE = crc_table()
