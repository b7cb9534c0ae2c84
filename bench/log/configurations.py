# SPDX-License-Identifier: Apache-2.0
"""What is measured by MooBench's experiment: each puts itself around the same Java program."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.log.collected import Collected

from tare.native import native

PACKAGE = "tare.moobench"
SIMPLE, TARE, RECORDER = (
    f"{PACKAGE}.MonitoredClass{name}" for name in ("Simple", "Tare", "FlightRecorder")
)
AGENT = native("java", "tare-log-agent.jar")


@dataclass(frozen=True)
class Started:
    """How one loop is started, and how many events were found when it had ended."""

    command: list[str]
    found: Callable[[], int | None]
    """None where there are none to be found."""


@dataclass(frozen=True)
class Configuration:
    """`events` are what a call logs: 2 where its begin and its end are told apart."""

    name: str
    application: str = SIMPLE
    jvm: tuple[str, ...] = ()
    events: int = 0
    collector: tuple[str, ...] | None = None
    """Options of a collector of Tare's, under which the program runs; None for none."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def started(self, java: Sequence[str], words: Sequence[str], folder: Path) -> Started:
        """One loop, whose files go into an empty folder."""
        jvm = [one.format(folder=folder) for one in self.jvm]
        command = [*java, *jvm, f"{PACKAGE}.Benchmark", "-a", self.application, *words]
        if self.collector is not None:
            collected = Collected(folder / "tare", self.collector)
            return Started(collected.around(command), lambda: collected.counters()["events"])
        if self.application == RECORDER:
            return Started(command, lambda: _recorded(java[0], folder / "recorded.jfr"))
        return Started(command, lambda: None)


def _tare(name: str, handler: str, codec: str = "any") -> Configuration:
    properties = {"handler": handler, "codec": codec, "policy": "wait"}
    jvm = tuple(f"-D{PACKAGE}.{key}={value}" for key, value in properties.items())
    return Configuration(name, TARE, jvm, 0 if handler == "null" else 2, ())


CONFIGURATIONS = (
    Configuration("no instrumentation"),
    _tare("tare, null", "null"),
    _tare("tare, buffered", "buffered", "uncompressed"),
    _tare("tare, zstd", "buffered", "zstd"),
    _tare("tare, lz4", "buffered", "lz4"),
    _tare("tare, lzo1x", "buffered", "lzo1x"),
    Configuration(
        "tare, agent", SIMPLE, (f"-javaagent:{AGENT}=include={SIMPLE}",), 2, ()
    ),
    Configuration(
        "flight recorder",
        RECORDER,
        ("-XX:StartFlightRecording=filename={folder}/recorded.jfr,settings=none",
         "-XX:FlightRecorderOptions=stackdepth=1"),
        1,
    ),
)  # fmt: skip


def _recorded(java: str, file: Path) -> int:
    """Events of calls in a recording."""
    jfr = Path(java).with_name("jfr")
    done = subprocess.run(
        [str(jfr), "summary", str(file)], capture_output=True, text=True, check=True
    )
    rows = (line.split() for line in done.stdout.splitlines())
    return sum(int(row[1]) for row in rows if row and row[0] == f"{PACKAGE}.Call")
