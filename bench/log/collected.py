# SPDX-License-Identifier: Apache-2.0
"""What a collector says of the events of a program that it ran."""

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
        """How many of so many events are in the file. Raises SystemExit where some are neither
        there nor counted as lost."""
        counted = self.counters()
        kept, lost = counted["events"], counted["events_lost"]
        if kept + lost != logged:
            raise SystemExit(f"{self.name}: {logged} logged, {kept} kept, {lost} lost")
        return kept

    def complete(self, logged: int) -> str:
        """The same as a share, for a person."""
        return f"{self.kept(logged) / logged:.2%} of {logged:,} events in the file"

    @property
    def _events(self) -> Path:
        return self.name.with_suffix(".log")

    @property
    def _costs(self) -> Path:
        return self.name.with_suffix(".costs")
