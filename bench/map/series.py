# SPDX-License-Identifier: Apache-2.0
"""Measurements one after the other: each is bounded, and one that fails does not end the others."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from bench.map.cells import Measured, Run, Setup, measured
from bench.map.load import CellError, closed

AROUND_S = 20
"""What a measurement takes besides its window: its programs start and end."""
RUN_S = 100
"""What it may take at most besides its window."""


@dataclass(frozen=True)
class Failed:
    """A measurement without a result."""

    run: Run
    reason: str


class Series:
    """Results and failures so far, and until when there may be more."""

    def __init__(
        self, setup: Setup, limit_s: float, measure: Callable[[Setup, Run], Measured] = measured
    ) -> None:
        self.setup = setup
        self.end = time.monotonic() + limit_s
        self.results: list[Measured] = []
        self.failures: list[Failed] = []
        self._measure = measure

    def measure(self, run: Run, seconds: float) -> None:
        """Adds a result or a failure."""
        if found := self.attempt(run, seconds):
            self.results.append(found)

    def attempt(self, run: Run, seconds: float) -> Measured | None:
        """The same, but a result is only returned."""
        name = f"{run.cell.figure} {run.cell.x} {run.method}"
        left = self.end - time.monotonic()
        if left < seconds + AROUND_S:
            self._failed(run, "no time was left")
            return None
        print(name, "before" if run.tracer_first else "after", file=sys.stderr, flush=True)
        try:
            with within(min(left, seconds + RUN_S)):
                return self._measure(replace(self.setup, seconds=seconds), run)
        except (CellError, OSError, subprocess.SubprocessError, LookupError, ValueError) as error:
            # The next measurement begins without connections of this one.
            with suppress(CellError, OSError, subprocess.SubprocessError), within(AROUND_S):
                closed(self.setup.network)
            self._failed(run, f"{error}" or type(error).__name__)
            return None

    def _failed(self, run: Run, reason: str) -> None:
        line = " ".join(reason.split())
        print(f"no result: {line}", file=sys.stderr, flush=True)
        self.failures.append(Failed(run, line))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises CellError if it takes longer; for the main thread."""

    def late(*_: object) -> None:
        raise CellError(f"not done within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
