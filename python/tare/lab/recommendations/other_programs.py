# SPDX-License-Identifier: Apache-2.0
"""The CPU time of programs that do not belong to the experiment, and of other virtual machines."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tare.lab.machine.fingerprint import cpu_ticks

KERNEL_THREADS = 2
"""The process whose children are threads of the kernel, which work for everybody."""
NAMED = 3


@dataclass(frozen=True)
class Process:
    """A living process."""

    name: str
    parent: int
    ticks: int
    """Its CPU time."""
    of_ended: int = 0
    """The CPU time of its children that have ended and were waited for."""


@dataclass(frozen=True)
class CpuTimes:
    """CPU times up to now."""

    at_s: float
    processes: Mapping[tuple[int, int], Process]
    """By PID and time of the start, which together are unique."""
    all_ticks: int
    stolen_ticks: int
    """That the hypervisor gave to other virtual machines."""


@dataclass(frozen=True)
class Others:
    """What other programs did in some time."""

    cpus: float
    """CPU seconds per second."""
    programs: tuple[tuple[str, int, float], ...]
    """Name, PID and CPU seconds per second of those that used most."""
    stolen: float
    """The share of the time of all CPUs."""
    experiments: int
    """Other runs of tare."""


def cpu_times(proc: Path = Path("/proc")) -> CpuTimes:
    """Reads the CPU times of all processes that this process can see."""
    found = {}
    for name in os.listdir(proc):  # noqa: PTH208
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                line = (proc / name / "stat").read_bytes()
                head, _, tail = line.rpartition(b")")
                fields = tail.split()
                program = os.fsdecode(head.partition(b"(")[2])
                own, of_ended = (sum(map(int, fields[at : at + 2])) for at in (11, 13))
                found[int(name), int(fields[19])] = Process(program, int(fields[1]), own, of_ended)
    all_ticks, stolen = cpu_ticks()
    return CpuTimes(time.monotonic(), found, all_ticks, stolen)


def between(
    before: CpuTimes,
    after: CpuTimes,
    own_before: Collection[int],
    own_after: Collection[int],
    experiments: int = 0,
) -> Others:
    """What all but the processes of the experiment did between two readings.

    The time of a process that ends goes to the parent that waits for it, so the sum over all
    processes grows by what they used, also if some of them started or ended meanwhile. If no parent
    waits, that time is lost from the sum; then the living processes alone may have used more.
    """
    seconds = max(after.at_s - before.at_s, 1e-9)
    first, last = _foreign(before, own_before), _foreign(after, own_after)
    unit = os.sysconf("SC_CLK_TCK") * seconds
    earlier = {key: process.ticks for key, process in first.items()}
    grown = [
        (process.name, key[0], process.ticks - earlier.get(key, 0)) for key, process in last.items()
    ]
    grown.sort(key=lambda program: -program[2])
    of_living = sum(ticks for _, _, ticks in grown)
    used = max(_sum(last) - _sum(first), of_living)
    of_all = max(after.all_ticks - before.all_ticks, 1)
    return Others(
        cpus=used / unit,
        programs=tuple(
            (name, pid, ticks / unit) for name, pid, ticks in grown[:NAMED] if ticks > 0
        ),
        stolen=(after.stolen_ticks - before.stolen_ticks) / of_all,
        experiments=experiments,
    )


def _sum(processes: Mapping[tuple[int, int], Process]) -> int:
    return sum(process.ticks + process.of_ended for process in processes.values())


def _foreign(times: CpuTimes, own: Collection[int]) -> dict[tuple[int, int], Process]:
    return {
        key: process
        for key, process in times.processes.items()
        if key[0] not in own and KERNEL_THREADS not in (key[0], process.parent)
    }
