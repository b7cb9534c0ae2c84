# SPDX-License-Identifier: Apache-2.0
"""The events of a program that a collector ran: what it says of them, and what is in its file."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tare.native import native

LOG = native("bin", "tare-log")


@dataclass(frozen=True)
class Collected:
    """A collector's files: NAME.log, NAME.costs."""

    name: Path
    options: tuple[str, ...] = ()

    def around(self, command: Sequence[str]) -> list[str]:
        """The command under a collector."""
        files = ["--out", str(self._events), "--costs", str(self._costs)]
        return [LOG, "run", *files, *self.options, "--", *command]

    def counters(self) -> dict[str, int]:
        """What it has counted, when it has ended."""
        with pa.ipc.open_stream(self._costs) as stream:
            rows = stream.read_all().to_pylist()
        return {str(row["metric"]): row["count"] for row in rows}

    def kept(self, logged: int) -> int:
        """How many of so many events can be read from the file. Raises SystemExit where some are
        neither there nor counted there as lost."""
        found = self._found()
        kept, lost = found["events"], found["lost"]
        if kept + lost != logged:
            raise SystemExit(f"{self.name}: {logged} logged, {kept} kept, {lost} lost")
        return kept

    def complete(self, logged: int) -> str:
        """Says that all of so many events can be read from the file. Raises SystemExit where they
        cannot."""
        if lost := logged - self.kept(logged):
            raise SystemExit(f"{self.name}: {logged} logged, {lost} of them lost")
        return f"all of {logged:,} events in the file"

    def _found(self) -> dict[str, int]:
        """What `recover` counts, which unpacks every block."""
        copy = self.name.with_suffix(".copy")
        words = [LOG, "recover", str(self._events), "--out", str(copy), "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        copy.unlink(missing_ok=True)
        if done.returncode:
            raise SystemExit(done.stderr.strip())
        return {name: count for name, count in json.loads(done.stdout).items() if name != "out"}

    @property
    def _events(self) -> Path:
        return self.name.with_suffix(".log")

    @property
    def _costs(self) -> Path:
        return self.name.with_suffix(".costs")
