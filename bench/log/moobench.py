# SPDX-License-Identifier: Apache-2.0
"""MooBench's experiment on every JDK of this machine: one loop of each configuration in turn."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from bench.cases import Case
from bench.log.configurations import CONFIGURATIONS, Configuration
from bench.results import ROOT
from pyarrow import csv

from tare.lab.doctor.jdks import jdks
from tare.native import native

JARS = (ROOT / "java" / "moobench" / "target" / "moobench.jar", native("java", "tare-log.jar"))
HEAP = ("-Xms1G", "-Xmx2G")
CALLS, DEPTH = 2_000_000, 10
COLUMNS = ("thread", "duration_ns", "heap", "collections")
OLDEST = 17
NATIVE_ACCESS = 22
BASELINE = CONFIGURATIONS[0]


@dataclass(frozen=True)
class Loop:
    """One JVM's second half, as MooBench counts: arrays of shape (n,)."""

    durations_us: npt.NDArray[np.float64]
    heap: npt.NDArray[np.int64]
    collections: int
    complete: float | None
    """Events found afterwards by events written; None where none are."""


def cases(folder: Path, loops: int, *, calls: int = CALLS, depth: int = DEPTH) -> list[Case]:
    """A case for each configuration and JDK, and what the bars ask of them."""
    found = []
    for version, home in _jdks().items():
        taken: dict[str, list[Loop]] = {one.name: [] for one in CONFIGURATIONS}
        order = random.Random(version)
        for _ in range(loops):
            for one in order.sample(CONFIGURATIONS, len(CONFIGURATIONS)):
                words = ["-c", str(calls), "-m", "0", "-t", "1", "-d", str(depth), "-q"]
                loop = _loop(one, _java(home, version), words, folder)
                taken[one.name].append(_read(loop, one.events * calls * depth))
        found += list(_cases(version, taken))
    return found


def _jdks() -> dict[int, Path]:
    """The newest release of each of the versions from 17 on."""
    return {
        version: Path(jdk["home"])
        for jdk in jdks().details["jdks"]
        if jdk["kind"] == "JDK" and (version := int(jdk["version"].partition(".")[0])) >= OLDEST
    }


def _java(home: Path, version: int) -> list[str]:
    java = [str(home / "bin" / "java"), *HEAP, "-cp", os.pathsep.join(map(str, JARS))]
    return [*java, "--enable-native-access=ALL-UNNAMED"] if version >= NATIVE_ACCESS else java


def _loop(
    of: Configuration, java: Sequence[str], words: Sequence[str], folder: Path
) -> tuple[Path, int | None]:
    """The file of results of one JVM, and how many events were found afterwards."""
    here = folder / "loop"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    raw = here / "raw.csv"
    started = of.started(java, [*words, "-o", str(raw)], here)
    done = subprocess.run(
        started.command,
        env=os.environ | of.variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{of.name}: {done.stderr.strip()}")
    return raw, started.found()


def _read(loop: tuple[Path, int | None], written: int) -> Loop:
    """The second half of the calls of a file of results, of a loop that wrote so many events."""
    raw, found = loop
    table = csv.read_csv(
        raw,
        csv.ReadOptions(column_names=COLUMNS),
        csv.ParseOptions(delimiter=";"),
        csv.ConvertOptions(include_columns=COLUMNS[1:]),
    )
    half: pa.Table = table.slice(table.num_rows // 2)
    durations, heap, collections = (half[name].to_numpy() for name in COLUMNS[1:])
    complete = None if found is None or not written else found / written
    return Loop(durations / 1_000, heap, int(collections.sum()), complete)


def _cases(version: int, taken: dict[str, list[Loop]]) -> Iterator[Case]:
    """Median, least and mean of each loop: a loop is a run. The baseline is the peer."""
    base = taken[BASELINE.name]
    for name, loops in taken.items():
        prefix = f"java-{version}-{name.replace(', ', '-').replace(' ', '-')}"
        for of, statistic in (("median", np.median), ("least", np.min), ("mean", np.mean)):
            values = [float(statistic(loop.durations_us)) for loop in loops]
            peers = [float(statistic(loop.durations_us)) for loop in base]
            note = _note(loops) if of == "median" else ""
            if name == BASELINE.name:
                yield Case(f"{prefix}-{of}", name, "", "µs", values, note=note)
            else:
                yield Case(f"{prefix}-{of}", name, BASELINE.name, "µs", values, peers, note)
    zstd = taken["tare, zstd"]
    complete = [loop.complete or 0.0 for loop in zstd]
    yield Case(f"java-{version}-tare-zstd-complete", "tare, zstd", "", "of all", complete)
    for name in ("flight recorder",):
        yield from _compared(version, name, zstd, taken[name])


def _compared(
    version: int, name: str, ours: Sequence[Loop], theirs: Sequence[Loop]
) -> Iterator[Case]:
    """Medians of ours and of another's."""
    yield Case(
        f"java-{version}-beside-{name.replace(' ', '-')}",
        "tare, zstd",
        name,
        "µs",
        [float(np.median(loop.durations_us)) for loop in ours],
        [float(np.median(loop.durations_us)) for loop in theirs],
    )


def _note(loops: Sequence[Loop]) -> str:
    """What MooBench's table has besides, over all loops."""
    every = np.concatenate([loop.durations_us for loop in loops])
    p10, p99 = np.percentile(every, [10, 99])
    heap = np.concatenate([loop.heap for loop in loops])
    last = float(np.mean(loops[-1].durations_us))
    told = (
        f"p10 {p10:.3f}, sd {every.std():.2f}, p99 {p99:.2f} µs; the last loop alone, as MooBench's"
        f" script reads it, mean {last:.3f} µs; heap {heap.mean() / 2**20:.0f} MiB, coefficient of"
        f" variation {heap.std() / heap.mean():.1%}; {sum(loop.collections for loop in loops)}"
        " collections"
    )
    complete = [loop.complete for loop in loops if loop.complete is not None]
    return f"{told}; complete: {min(complete):.2%}" if complete else told
