# SPDX-License-Identifier: Apache-2.0
"""A run of tare map, and what it cost in a window of time."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.link.services import cpu_seconds
from bench.map.load import CellError, wait_for

from tare.native import native

MAP = native("bin", "tare-map")
BY_TRACER = (
    "count_open",
    "count_open_in_namespace",
    "drain",
    "drain_namespace",
    "find_connections",
    "find_listeners",
)
"""Programs that run inside the tracer's system calls: their time is in its CPU time."""
END_S = 30


@dataclass(frozen=True)
class Moment:
    """The tracer at one time."""

    clock: float
    cpu: float
    """Seconds of the process."""
    printed: int
    """Bytes until then."""


@dataclass(frozen=True)
class Cost:
    """Of a window."""

    process: float
    """CPU time of the process, per second."""
    programs: float
    """Run time of BPF programs outside of the process, per second."""


class Tracing:
    """Tare map, printing all edges each second into a file."""

    def __init__(self, process: subprocess.Popen[bytes], file: Path) -> None:
        self.process = process
        self.file = file

    def now(self) -> Moment:
        """CPU time and place in the output."""
        if self.process.poll() is not None:
            raise CellError(f"{self.process.args!r} ended early")
        printed = self.file.stat().st_size
        return Moment(time.monotonic(), cpu_seconds(self.process.pid), printed)

    def cost(self, begin: Moment, end: Moment) -> Cost:
        """CPU shares between two moments; of BPF programs, between the last lines before each."""
        first, last = self._last_line(begin.printed), self._last_line(end.printed)
        seconds = last["seconds"] - first["seconds"]
        if not seconds:
            raise CellError(f"{self.process.args!r} printed nothing in the window")
        hooks = outside(last["tracer"]["programs"]) - outside(first["tracer"]["programs"])
        return Cost(
            (end.cpu - begin.cpu) / (end.clock - begin.clock),
            hooks / 1e9 / seconds,
        )

    def finish(self) -> Any:
        """The last line, which has everything."""
        self.process.send_signal(signal.SIGINT)
        if self.process.wait(END_S):
            raise CellError(f"{self.process.args!r}: exit code {self.process.returncode}")
        return self._last_line(self.file.stat().st_size)

    def _last_line(self, limit: int) -> Any:
        """The last complete line in the first `limit` bytes."""
        found, end = b"", 0
        with self.file.open("rb") as lines:
            for line in lines:
                end += len(line)
                if end > limit or not line.endswith(b"\n"):
                    break
                found = line
        return json.loads(found)


@contextmanager
def tracing(method: str, folder: Path, seconds: float) -> Iterator[Tracing]:
    """Once it traces; it ends by itself after so long."""
    file = folder / "edges.jsonl"
    options = ["--method", method, "--jsonl", "--interval", "1s", "--tracer-stats"]
    command = [str(MAP), *options, "--duration", f"{seconds:.3f}s"]
    with file.open("wb") as output, subprocess.Popen(command, stdout=output) as process:
        try:
            traced = Tracing(process, file)
            wait_for(lambda: b"\n" in file.read_bytes() or process.poll() is not None, "edges")
            yield traced
        finally:
            process.kill()


def outside(programs: Mapping[str, Mapping[str, int]]) -> int:
    """Nanoseconds of the programs that others run."""
    return sum(cost["nanoseconds"] for name, cost in programs.items() if name not in BY_TRACER)
