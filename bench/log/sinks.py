# SPDX-License-Identifier: Apache-2.0
"""Where the events of a Java program go, and how many of them are there when it has ended."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench.log.collected import Collected
from bench.log.kieker import Records, read_names

METHOD = "monitoredMethod"
OUTPUT = "output.txt"
"""What the program prints, in its folder."""
CHUNK = 1 << 24


@dataclass(frozen=True)
class Sink:
    """While a program runs: `before` stands before its command, `port` is where events go."""

    found: Callable[[int], int]
    """How many events are there, of so many that were logged; asked when the program has ended."""
    before: tuple[str, ...] = ()
    port: int = 0


@dataclass(frozen=True)
class Program:
    """What is to be run."""

    folder: Path
    """Its own, and empty."""
    java: Path


Sinks = Callable[[Program], AbstractContextManager[Sink]]


@contextmanager
def nowhere(_: Program) -> Iterator[Sink]:
    """Events are not kept, or there are none."""
    yield Sink(lambda _: 0)


@contextmanager
def collector(program: Program) -> Iterator[Sink]:
    """A collector of Tare's."""
    collected = Collected(program.folder / "tare")
    yield Sink(collected.kept, tuple(collected.around(())))


@contextmanager
def recording(program: Program) -> Iterator[Sink]:
    """A file of the JVM's flight recorder, recorded.jfr."""

    def found(_: int) -> int:
        words = [
            str(program.java.with_name("jfr")),
            "summary",
            str(program.folder / "recorded.jfr"),
        ]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rows = (line.split() for line in done.stdout.splitlines())
        return sum(int(row[1]) for row in rows if row and row[0] == "tare.moobench.Call")

    yield Sink(found)


@contextmanager
def compressed_blocks(program: Program) -> Iterator[Sink]:
    """The files of cloudprofiler_like.c, which begin with a block's compressed size."""

    def found(_: int) -> int:
        return sum(map(_in_blocks, program.folder.glob("*.zstd")))

    yield Sink(found)


def _in_blocks(path: Path) -> int:
    """Records of a call's depth and a time."""
    found = 0
    with path.open("rb") as file:
        while header := file.read(4):
            packed = file.read(struct.unpack("<i", header)[0])
            raw = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
            records = np.frombuffer(raw, "<i8").reshape(-1, 5)
            found += int(np.count_nonzero((records[:, 0] > 0) & (records[:, 1] > 0)))
    return found


def lines_with(text: bytes, files: str) -> Sinks:
    """Text files, which have `text` once for each event."""

    @contextmanager
    def sink(program: Program) -> Iterator[Sink]:
        yield Sink(lambda _: sum(_count(path, text) for path in program.folder.glob(files)))

    return sink


def _count(path: Path, text: bytes) -> int:
    found, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            chunk = rest + chunk
            found += chunk.count(text)
            rest = chunk[len(chunk) - len(text) + 1 :]
    return found


@contextmanager
def kieker_files(program: Program) -> Iterator[Sink]:
    """Kieker's binary files."""

    def found(_: int) -> int:
        (here,) = program.folder.glob("kieker-*")
        records = Records(METHOD, read_names(here / "kieker.map"))
        for file in sorted(here.glob("*.bin")):
            records.feed(file.read_bytes())
        return records.found

    yield Sink(found)
