# SPDX-License-Identifier: Apache-2.0
"""Writers in every language leave the same bytes in memory, where include/tare_shm.h says."""

import mmap
import os
import struct
import subprocess
from pathlib import Path

import pytest
from tests.hostile.attacks.segment import at, size
from tests.log.languages import command

VECTOR = Path(__file__).parent / "vector.txt"
NAMES = ["numbers", "texts", "work>", "work<"]


def vector() -> list[list[int]]:
    lines = VECTOR.read_text().splitlines()
    return [
        [int(word, 16) for word in line.split("#")[0].split()]
        for line in lines
        if not line.startswith("#")
    ]


class Memory:
    """The segment of a program that runs."""

    def __init__(self, process: int) -> None:
        folder = Path(f"/proc/{process}/fd")
        links = [file for file in folder.iterdir() if "memfd:tare-log" in str(file.readlink())]
        (link,) = links
        with link.open("rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def number(self, form: str, offset: int) -> int:
        number: int = struct.unpack_from(form, self.memory, offset)[0]
        return number

    def names(self) -> list[str]:
        used = self.number("I", at("tare_log_process", "channels_used"))
        return [self.name(channel) for channel in range(1, used)]

    def name(self, channel: int) -> str:
        entry = at("tare_log_process", "channels") + channel * size("tare_log_process_channel")
        assert self.number("I", entry + at("tare_log_process_channel", "opened")) == 1
        place = self.number("I", entry + at("tare_log_process_channel", "name_at"))
        length = self.number("I", entry + at("tare_log_process_channel", "name_length"))
        start = at("tare_log_process", "names") + place
        return self.memory[start : start + length].decode()

    def words(self) -> list[int]:
        """Of the first ring, all that was ever written."""
        ring = size("tare_log_process")
        head = self.number("Q", ring + at("tare_shm_ring", "head"))
        assert self.number("Q", ring + at("tare_shm_ring", "tail")) == 0
        return list(struct.unpack_from(f"{head}Q", self.memory, ring + size("tare_log_ring")))


@pytest.mark.parametrize("language", ["C", "C++", "Rust", "Python"])
def test_every_language_writes_the_vector(language: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(language, "vector"),
        env=os.environ | {"TARE_LOG": str(tmp_path / "nobody"), "TARE_LOG_RING": "64K"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        memory = Memory(process.pid)
        started = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
        name = Path(f"/proc/{process.pid}/comm").read_bytes().rstrip().ljust(16, b"\0")
        header = {
            field: memory.number(form, at("tare_shm_header", field))
            for field, form in (
                ("magic", "Q"),
                ("kind", "I"),
                ("owner_pid", "I"),
                ("owner_start", "Q"),
            )
        }
        names, words = memory.names(), memory.words()
        process.communicate()
    assert header["magic"] == int.from_bytes(b"TAREshm1", "little")
    assert (header["owner_pid"], header["owner_start"]) == (process.pid, started)
    assert names == NAMES
    expected, ticks = vector(), []
    place = 0
    for record in expected:
        ticks.append(words[place])
        record[0] = words[place]
        place += len(record)
    expected[0][2:3] = [process.pid]
    expected[0][4:6] = struct.unpack("2Q", name)
    assert words == [word for record in expected for word in record]
    assert ticks == sorted(ticks)
    assert ticks[0] > 0
