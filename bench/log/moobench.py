# SPDX-License-Identifier: Apache-2.0
"""MooBench's experiment on every JDK of this machine: one loop of each configuration in turn.

MOOBENCH=FOLDER keeps the files of results, by MooBench's own names.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median

from bench.cases import FOLDER, Case
from bench.log import moobench_tables as tables
from bench.log.build import build_for_java
from bench.log.loops import Loop, for_github, read
from bench.log.moobench_configurations import BY_NAME, CONFIGURATIONS, PACKAGE, Configuration
from bench.log.sinks import OUTPUT, Program
from bench.results import ROOT

from tare.lab.doctor.jdks import jdks
from tare.native import native

JARS = (ROOT / "java" / "moobench" / "target" / "moobench.jar", native("java", "tare-log.jar"))
HEAP = ("-Xms1G", "-Xmx2G")
OLDEST = 17
NATIVE_ACCESS = 22
TIMEOUT, GRACE = 300, 20
GITHUB = FOLDER / "log" / "moobench.json"
BASELINE, OURS, OURS_DROPPING = "no instrumentation", "tare, zstd", "tare, zstd, drop"
DEPTH, DEPTHS, THREADS = 10, (2, 4, 8, 16, 32, 64, 128), (1, 2, 4)
SCALED = (
    BASELINE,
    OURS,
    "cloudprofiler-like, asleep",
    "kieker, binary file",
    "opentelemetry, OTLP",
    "flight recorder",
)
# Its channels have one writer each.
BY_THREADS = tuple(name for name in SCALED if not name.startswith("cloudprofiler-like"))
SCALED_CALLS, SCALED_LOOPS = 100_000, 2
FAILURES = (OSError, RuntimeError, ValueError, subprocess.SubprocessError)

Taken = Mapping[str, Sequence[Loop]]


@dataclass
class Measured:
    """What is held against bars, tables for people, and why configurations are not in them."""

    cases: list[Case] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Load:
    """What is asked of a configuration."""

    calls: int
    depth: int = DEPTH
    threads: int = 1


class Machine:
    """A JDK, and what has failed on it twice: that is not tried again."""

    def __init__(self, version: int, home: Path, folder: Path) -> None:
        self.version, self.home, self.folder = version, home, folder
        self.failures: dict[str, str] = {}

    @cached_property
    def _library(self) -> Path:
        return build_for_java(self.folder, self.home)

    def loop(
        self, configuration: Configuration, load: Load, keep: Path | None = None
    ) -> Loop | None:
        """One JVM's, at the second attempt if need be; None where that fails."""
        here = self.folder / "loop"
        if configuration.missing:
            self.failures[configuration.name] = configuration.missing
        for is_last in (False, True):
            if configuration.name in self.failures:
                break
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir()
            try:
                return self._run(configuration, load, here, keep)
            except FAILURES as failure:
                why = " ".join(str(failure).split()).replace(f"{ROOT}/", "")
                why = why or type(failure).__name__
                print(f"{configuration.name}, Java {self.version}: {why}", flush=True)
                if is_last:
                    self.failures[configuration.name] = why
        return None

    def _run(self, configuration: Configuration, load: Load, here: Path, keep: Path | None) -> Loop:
        java, raw = self.home / "bin" / "java", here / "raw.csv"
        with configuration.sink(Program(here, java)) as sink:
            library = (
                self._library if any("{library}" in option for option in configuration.jvm) else ""
            )
            values = {"folder": here, "port": sink.port, "library": library}
            jvm = [*HEAP, *(option.format(**values) for option in configuration.jvm)]
            if self.version >= NATIVE_ACCESS:
                jvm.append("--enable-native-access=ALL-UNNAMED")
            words = [*sink.before, str(java), *jvm, "-cp", os.pathsep.join(map(str, JARS))]
            asked: dict[str, object] = {
                "-c": load.calls,
                "-d": load.depth,
                "-t": load.threads,
                "-m": 0,
            }
            asked |= {"-a": configuration.application, "-o": raw}
            words += [f"{PACKAGE}.Benchmark", "-q"]
            words += [str(word) for pair in asked.items() for word in pair]
            status = _finished(words, configuration.variables, here / OUTPUT)
            if status:
                lines = (here / OUTPUT).read_text(errors="replace").splitlines()
                raise RuntimeError(f"exit {status}: {' '.join(lines[-3:])}")
            written = configuration.events * load.calls * load.depth * load.threads
            complete = sink.found(written) / written if written else None
        loop = read(raw, load.threads, complete)
        if keep:
            keep.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(raw, keep)
        return loop


def _finished(words: Sequence[str], variables: Mapping[str, str], output: Path) -> int:
    """The exit code of a program, which is ended where it takes too long; nothing of it stays."""
    with (
        output.open("wb") as file,
        subprocess.Popen(
            words,
            env=os.environ | variables,
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            # A collector passes this on to its program.
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            raise
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def about(loops: int) -> str:
    """What was done, for a person."""
    return (
        f"Java: MooBench's experiment, {loops} loops of each configuration in turn, in random"
        f" order, the second half of its calls counted; JVMs have {' '.join(HEAP)} and all CPUs,"
        " and begin at once (`-q`)."
        " Cloudprofiler-like is ours, from its description."
        " [How, and why a bar is not reached](decisions/0112-moobenchs-experiment.md)."
    )


def measure(folder: Path, loops: int, *, quick: bool) -> Measured:
    """All configurations on all JDKs, or those that bars compare if `quick`."""
    measured = Measured()
    github = []
    for version, home in _jdks().items():
        machine = Machine(version, home, folder)
        taken = _in_turn(machine, loops, quick)
        measured.cases += _cases(version, taken)
        scaled = () if quick else tuple(_scaled(machine))
        measured.tables += [tables.main(version, taken, machine.failures), *scaled]
        measured.failures |= {f"{name} ({version})": why for name, why in machine.failures.items()}
        github += for_github({f"Java {version}: {name}": of for name, of in taken.items()})
    GITHUB.write_text(json.dumps(github, indent=1))
    return measured


def _jdks() -> dict[int, Path]:
    """The newest release of each of the versions from 17 on."""
    return {
        version: Path(jdk["home"])
        for jdk in jdks().details["jdks"]
        if jdk["kind"] == "JDK" and (version := int(jdk["version"].partition(".")[0])) >= OLDEST
    }


def _in_turn(machine: Machine, loops: int, quick: bool) -> Taken:
    """Loops of all that did not fail, in another order each time."""
    configurations = [
        configuration for configuration in CONFIGURATIONS if _is_barred(configuration) or not quick
    ]
    taken: dict[str, list[Loop]] = {configuration.name: [] for configuration in configurations}
    order = random.Random(machine.version)
    keep = os.environ.get("MOOBENCH")
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        places = "".join(
            f"{place};{configuration.name}\n" for place, configuration in enumerate(configurations)
        )
        (Path(keep) / "configurations.csv").write_text(places)
    for number in range(1, loops + 1):
        for place in order.sample(range(len(configurations)), len(configurations)):
            configuration = configurations[place]
            file = f"java-{machine.version}/raw-{number}-{DEPTH}-{place}.csv"
            load = Load(configuration.calls // 4 if quick else configuration.calls)
            loop = machine.loop(configuration, load, Path(keep) / file if keep else None)
            if loop is not None:
                taken[configuration.name].append(loop)
        print(f"MooBench, Java {machine.version}: loop {number} of {loops}", flush=True)
    return {name: of for name, of in taken.items() if name not in machine.failures}


def _scaled(machine: Machine) -> Iterator[str]:
    """Tables over depths and threads, all of whose loops are measured in turn."""
    series = {
        "depth": (SCALED, [Load(SCALED_CALLS, depth=depth) for depth in DEPTHS]),
        "threads": (BY_THREADS, [Load(SCALED_CALLS, threads=threads) for threads in THREADS]),
    }
    taken: dict[tuple[str, Load], list[Loop]] = {
        (name, load): [] for names, loads in series.values() for name in names for load in loads
    }
    order = random.Random(machine.version)
    for _ in range(SCALED_LOOPS):
        for name, load in order.sample([*taken], len(taken)):
            loop = machine.loop(BY_NAME[name], load)
            if loop is not None:
                taken[name, load].append(loop)
    for title, (names, loads) in series.items():
        rows = {name: {getattr(load, title): taken[name, load] for load in loads} for name in names}
        yield tables.scaled(machine.version, title, SCALED_CALLS, SCALED_LOOPS, rows)


def _cases(version: int, taken: Taken) -> Iterator[Case]:
    """What has bars: a loop's value is a turn's."""
    if OURS not in taken:
        return
    ours = taken[OURS]
    prefix = f"java-{version}"
    for statistic in ("median", "least", "mean"):
        values = [getattr(loop, statistic) for loop in ours]
        yield Case(f"{prefix}-tare-zstd-{statistic}", OURS, "", "µs", values)
    for name in (OURS, OURS_DROPPING):
        if name in taken:
            complete = [loop.complete or 0.0 for loop in taken[name]]
            case = f"{prefix}-{name.replace(', ', '-')}-complete"
            note = f"at least {tables.share(min(complete))}"
            yield Case(case, name, "", "of all", complete, note=note)
    for family, names in _peers(taken).items():
        for statistic in ("median", "mean"):
            best = min(names, key=lambda name: _level(taken[name], statistic))
            yield Case(
                f"{prefix}-beside-{family.replace(' ', '-')}-{statistic}",
                OURS,
                best,
                "µs",
                [getattr(loop, statistic) for loop in ours],
                [getattr(loop, statistic) for loop in taken[best]],
                _note(taken[best]),
            )


def _is_barred(configuration: Configuration) -> bool:
    return configuration.is_peer or configuration.name in (OURS, OURS_DROPPING)


def _level(loops: Sequence[Loop], statistic: str) -> float:
    return float(median(getattr(loop, statistic) for loop in loops))


def _peers(taken: Taken) -> dict[str, list[str]]:
    """Those of each family that bars speak of."""
    found: dict[str, list[str]] = {}
    for configuration in CONFIGURATIONS:
        if configuration.is_peer and configuration.name in taken:
            found.setdefault(configuration.family, []).append(configuration.name)
    return found


def _note(loops: Sequence[Loop]) -> str:
    shares = [loop.complete for loop in loops if loop.complete is not None]
    return f"of its events {tables.share(min(shares))} were found" if shares else ""
