# SPDX-License-Identifier: Apache-2.0
"""Programs that log, and what tare-log has of them."""

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyarrow.csv import ConvertOptions, read_csv
from tests import aarch64, once
from tests.log import jvm
from tests.waiting import SECONDS

from tare.native import native

TARE_LOG = native("bin", "tare-log")
PROGRAMS = Path(__file__).parent / "programs"
INTEGER = pa.int64()


class Row(NamedTuple):
    """One line of `tare log dump`."""

    time_ns: int
    ticks: int
    pid: int
    tid: int
    thread: str
    channel: str
    payload: str
    lost: int


def dump(*files: Path) -> list[Row]:
    """All events and losses of files, ring by ring."""
    text = subprocess.run(
        [TARE_LOG, "dump", *files], check=True, capture_output=True, text=True
    ).stdout
    names, *rows = csv.reader(io.StringIO(text))
    assert tuple(names) == Row._fields
    return [
        Row(int(ns or 0), int(ticks), int(pid), int(tid), thread, channel, payload, int(lost or 0))
        for ns, ticks, pid, tid, thread, channel, payload, lost in rows
    ]


def count(file: Path) -> int:
    """Events so far; none as long as nothing is known of their times."""
    with suppress(subprocess.CalledProcessError):
        return len(dump(file))
    return 0


def stats(*words: object) -> dict[str, Any]:
    """What `tare log stats` says of files."""
    command = [TARE_LOG, "stats", "--json", *(str(word) for word in words)]
    told: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout
    )
    return told


def locked(pid: int) -> set[int]:
    """Inodes of the files that a process has locked."""
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return {int(lock[5].split(":")[2]) for lock in locks if lock[4] == str(pid)}


def served(pid: int) -> set[int]:
    """Inodes of the segments that a collector has locked: that one is open shows no more than that
    the collector looks at it."""
    with suppress(FileNotFoundError):
        files = Path(f"/proc/{pid}/fd").iterdir()
        segments = [file for file in files if str(file.readlink()).startswith("/memfd:tare-log")]
        return {segment.stat().st_ino for segment in segments} & locked(pid)
    return set()


def ends(file: Path) -> list[str | None]:
    """How each process left."""
    return [end["how"] for end in stats(file)["ends"]]


def events(file: Path, payload: pa.DataType = INTEGER) -> pa.Table:
    """The same as a table, for many of them."""
    types = {"payload": payload, "lost": INTEGER, "channel": pa.string()}
    # Arrow's own pool returns memory to the kernel, which clears it for the next table.
    pa.set_memory_pool(pa.system_memory_pool())
    with subprocess.Popen([TARE_LOG, "dump", file], stdout=subprocess.PIPE) as process:
        table = read_csv(process.stdout, convert_options=ConvertOptions(column_types=types))
    assert process.returncode == 0
    return table


def ran(file: Path, program: Path, *arguments: object, **variables: str) -> dict[str, int]:
    """Runs a program beside a collector; what tare-log counts."""
    command = [TARE_LOG, "run", "--out", file, "--json", "--", program, *arguments]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
        env=os.environ | variables,
    )
    totals: dict[str, int] = json.loads(done.stderr.splitlines()[-1])
    return totals


@pytest.fixture(scope="session")
def compiled() -> Callable[[str], Path]:
    """Compiles one of the programs against the library, once."""
    if aarch64.FOLDER and (why := aarch64.missing()):
        pytest.skip(why)
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")

    def run(name: str) -> Path:
        return once.once(name, lambda program: compile_program(name, program.parent), "log")

    return run


def compile_program(name: str, folder: Path) -> Path:
    """One of the programs, unless the folder has it already."""
    program = folder / name
    if not program.exists():
        include = Path(native("include", "tare_log.h")).parent
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{include}"]
        words: list[str | Path] = [*flags, PROGRAMS / f"{name}.c"]
        if aarch64.FOLDER:
            aarch64.alone(program, *words, f"{aarch64.FOLDER}/libtare_log.a")
        else:
            words.append(Path(native("lib", "libtare_log.a")))
            subprocess.run(["cc", *words, "-o", program], check=True)
    return program


@pytest.fixture(params=jvm.those_from(17))
def java(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs a Java program, which follows as a file; once a JDK."""
    if not Path(jvm.JAR).exists():
        pytest.skip("java/ is not built (make java)")
    if request.param not in jvm.FOUND:
        pytest.skip("there is no JDK that is new enough")
    return jvm.command(request.param)


@pytest.fixture(scope="session")
def acme() -> Path:
    """The classes of java/Acme.java, compiled by the oldest JDK."""
    if not jvm.FOUND:
        pytest.skip("there is no JDK from 17 on")
    return once.compiled("acme", jvm.javac(), "-d", once.OUT, jvm.PROGRAMS / "Acme.java")
