# SPDX-License-Identifier: Apache-2.0
"""What a collector costs while nobody logs."""

import time
from contextlib import ExitStack
from pathlib import Path

from bench.cases import Case
from bench.log.build import build_program
from bench.log.calls_in_bursts import COLLECTOR_CPU
from bench.log.collected import Collected
from bench.turns import Turner

from tare.lab.processes.cpu_time import own_ns

RINGS = 64
SECONDS = 5.0


def cases(folder: Path, repetitions: int) -> list[Case]:
    """Its share of a core in stretches of a few seconds, with the rings of many threads."""
    words = Collected(folder / "idle").around(
        [str(build_program(folder, "idle.c", "-pthread")), str(RINGS)]
    )
    with ExitStack() as stack:
        collector = Turner(words, {}, COLLECTOR_CPU, stack)
        collector.turn(1)
        shares = [_share(collector.process.pid) for _ in range(repetitions)]
    return [Case("collector-idle", f"collector, {RINGS} idle rings", "", "% of a core", shares)]


def _share(pid: int) -> float:
    begin, used = time.monotonic_ns(), own_ns(pid)
    time.sleep(SECONDS)
    return 100 * (own_ns(pid) - used) / (time.monotonic_ns() - begin)
