# SPDX-License-Identifier: Apache-2.0
"""A program that logs, and somebody who writes into its segment meanwhile.

`python -m tests.log.mutations LANGUAGE SEED NUMBER` makes this number of changes at random while a
program and its collector work.
"""

import mmap
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.hostile.attacks.segment import at, size
from tests.log.conftest import dump
from tests.log.languages import command
from tests.log.test_failures import collecting, ended
from tests.once import shared
from tests.waiting import SECONDS

from tare.running.segments import segments

PER_STEP = 100
"""Changes that are made while the program makes one step, and undone after it."""
WORD, HALF = 2**64 - 1, 2**32 - 1
RING = size("tare_log_process")
PROCESS = ("channels", "names", "rule_settings", "rule_of_channel", "tables", "states", "threaded")
PLACES = (
    (0, 64),
    *((at("tare_log_process", field) // 8, 64) for field in PROCESS),
    (RING // 8, 82),
    (RING // 8, 16),
    ((RING + size("tare_log_ring")) // 8, 8192),
)
"""Where something is kept: the first word, and how many there are."""


class Program:
    """One of `programs/lines`, which logs in every way after each line of its input."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._said(b"ready\n")

    def open_segment(self) -> int:
        """A descriptor of its segment."""
        links = Path(f"/proc/{self.process.pid}/fd").iterdir()
        (link,) = [link for link in links if "memfd:tare-log" in str(link.readlink())]
        return os.open(link, os.O_RDWR)

    def begin_step(self) -> None:
        """Lets it log."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    def end_step(self) -> None:
        """Waits until it has logged; the kernel's view of its segment is read meanwhile."""
        list(segments(self.process.pid))
        self._said(b"done\n")

    def end(self) -> None:
        """It ends by itself."""
        self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0

    def _said(self, line: bytes) -> None:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], SECONDS)[0], "it hangs"
        assert self.process.stdout.readline() == line


@contextmanager
def logging(words: Sequence[str], socket: Path) -> Iterator[Program]:
    """Such a program, whose collector is or would be at the socket."""
    variables = os.environ | {"TARE_LOG": str(socket), "TARE_LOG_RING": "64K"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=variables, stdin=pipe, stdout=pipe, bufsize=0) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


def mutate(words: Sequence[str], folder: Path, seed: int, number: int) -> int:
    """Makes at least this number of changes while a program and its collector work; returns how
    many events the file has. Raises AssertionError if one of them crashed or did not go on."""
    chance = Random(seed)
    with collecting(folder) as collector:
        with logging(words, folder / "socket") as program:
            with memory_of(program) as memory:
                for _ in range(-(-number // PER_STEP)):
                    program.begin_step()
                    undone = [change(memory, chance) for _ in range(PER_STEP)]
                    program.end_step()
                    for place, before in reversed(undone):
                        memory[place] = before
            program.end()
        assert collector.poll() is None
        assert "damaged" not in ended(collector)
    return len(dump(folder / "events.log"))


@contextmanager
def memory_of(program: Program) -> "Iterator[memoryview[int]]":
    """The words of its segment up to the end of the first ring, to read and write."""
    fd = program.open_segment()
    length = 8 * sum(PLACES[-1])
    with mmap.mmap(fd, length) as mapped, memoryview(mapped) as octets, octets.cast("Q") as words:
        os.close(fd)
        yield words


def change(memory: "memoryview[int]", chance: Random) -> tuple[int, int]:
    """Changes a word; returns its place, and what was there before."""
    begin, words = chance.choice(PLACES)
    place = begin + chance.randrange(words)
    before, shift = memory[place], chance.choice((0, 32))
    memory[place] = chance.choice((
        chance.getrandbits(64),
        before ^ 1 << chance.randrange(64),
        (before + chance.randrange(-32, 32)) & WORD,
        before & ~(HALF << shift) | chance.getrandbits(32) << shift,
        before & ~(HALF << shift) | chance.randrange(64) << shift,
        before | HALF << shift,
        (before + chance.randrange(-(2**15), 2**15)) & WORD,
    ))  # fmt: skip
    return place, before


if __name__ == "__main__":
    language, *numbers = sys.argv[1:]
    with shared(), TemporaryDirectory() as folder:
        print(mutate(command(language, "lines"), Path(folder), *map(int, numbers)))
