# SPDX-License-Identifier: Apache-2.0
"""Programs that log, and what tare-log has of them."""

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.csv import ConvertOptions, read_csv
from tests import aarch64
from tests.log import jvm
from tests.waiting import SECONDS

from tare.native import native

TARE_LOG = native("bin", "tare-log")
PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Row:
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
    rows = csv.DictReader(io.StringIO(text))
    return [
        Row(
            int(row["time_ns"] or 0),
            int(row["ticks"]),
            int(row["pid"]),
            int(row["tid"]),
            row["thread"],
            row["channel"],
            row["payload"],
            int(row["lost"] or 0),
        )
        for row in rows
    ]


def stats(*words: object) -> dict[str, Any]:
    """What `tare log stats` says of files."""
    command = [TARE_LOG, "stats", "--json", *(str(word) for word in words)]
    told: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout
    )
    return told


def ends(file: Path) -> list[str | None]:
    """How each process left."""
    return [end["how"] for end in stats(file)["ends"]]


def events(file: Path) -> pa.Table:
    """The same as a table, for millions of them."""
    out = subprocess.run([TARE_LOG, "dump", file], check=True, capture_output=True).stdout
    types = {"payload": pa.int64(), "lost": pa.int64(), "channel": pa.string()}
    return read_csv(pa.BufferReader(out), convert_options=ConvertOptions(column_types=types))


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
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles one of the programs against the library, once."""
    if aarch64.FOLDER and (why := aarch64.missing()):
        pytest.skip(why)
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("programs")

    return lambda name: compile_program(name, folder)


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
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The classes of java/Acme.java, compiled by the oldest JDK."""
    if not jvm.FOUND:
        pytest.skip("there is no JDK from 17 on")
    folder = tmp_path_factory.mktemp("acme")
    subprocess.run([jvm.javac(), "-d", folder, jvm.PROGRAMS / "Acme.java"], check=True)
    return folder
