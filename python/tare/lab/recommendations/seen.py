# SPDX-License-Identifier: Apache-2.0
"""What is read before, during and after the load of a run, for the checks to look at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tare.lab import neighbours
from tare.lab.recommendations.descriptors import Descriptors, most_used
from tare.lab.recommendations.other_programs import CpuTimes, Others, between, cpu_times
from tare.lab.recommendations.pods import Pod, read
from tare.lab.strain import Strain, Watch
from tare.lab.supervisor import descendants
from tare.plan import Condition, Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.lab.processes import Family, Processes
    from tare.lab.runs import Run
    from tare.samples.manifest import Facts

GENERATOR = "the load generator"
FIRST_LOOK_S, LOOK_S = 0.05, 1.0
"""From one look at the processes of the load generator to the next, at first and at most."""
PROC = Path("/proc")


@dataclass(frozen=True)
class Place:
    """The namespaces of a process, as the kernel names them."""

    pid: int
    network: str
    files: str

    @classmethod
    def of(cls, pids: Iterable[int], proc: Path = PROC) -> Place | None:
        """The place of the first process that lives and can be read."""
        for pid in pids:
            with suppress(OSError):
                net, mnt = (os.readlink(proc / f"{pid}/ns/{one}") for one in ("net", "mnt"))  # noqa: PTH115
                return cls(pid, net, mnt)
        return None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run, and what was read around its load."""

    plan: Plan
    condition: Condition
    address: str = "127.0.0.1"
    """Where the load reaches the service."""
    pods: Sequence[Pod] = ()
    """Of the manifests that describe where service and load generator run."""
    started_by_plan: bool = True
    """Whether the plan's commands may start them elsewhere; otherwise Tare starts them itself."""
    service: Place | None = None
    generator: Place | None = None
    machine: Facts = field(default_factory=dict)
    """The fingerprint of the machine before the first run."""
    others: Others | None = None
    """Programs besides the experiment's, during the load."""
    strain: Strain | None = None
    """What the kernel held the service back by."""
    generator_strain: Strain | None = None
    descriptors: Descriptors | None = None
    """Of the process of the service that is nearest to its limit, after the load."""
    costs: Mapping[str, pa.Table | None] = field(default_factory=dict)
    """What layers wrote of their own cost."""


class Observer:
    """Reads the machine around the load of the runs that are up at the same time."""

    def __init__(self, processes: Processes, up: Sequence[Run]) -> None:
        self._processes, self._up = processes, up
        pids = {run.number: run.pids for run in up}
        self._places = {number: Place.of(mine) for number, mine in pids.items()}
        self._watches = {number: Watch(mine) for number, mine in pids.items()}
        self._generator: Place | None = None
        around = {pid for run in up for pid in run.environment.generator_pids()}
        self._generator_watch = Watch(around, quota_only=True)
        self._next_look, self._pause_s = 0.0, FIRST_LOOK_S
        self._before, self._own_before = cpu_times(), self._own()

    def look(self, family: Callable[[], Family]) -> None:
        """Looks at the processes of the load generator; call it often while it runs."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LOOK_S)
        pids = family().pids
        self._generator = Place.of(pids) or self._generator
        self._generator_watch.look(pids)

    def end(self, plan: Plan, pods: Sequence[Pod], machine: Facts) -> dict[int, Seen]:
        """What was read, by the number of the run; call it while the services are still up."""
        after: CpuTimes = cpu_times()
        others = between(
            self._before, after, self._own_before, self._own(), len(neighbours.others())
        )
        generator_strain = self._generator_watch.strain()
        return {
            run.number: Seen(
                plan=plan,
                condition=run.condition,
                address=run.environment.address,
                pods=_pods_of(run, pods),
                started_by_plan=run.environment.settings.type == "host",
                service=self._places[run.number],
                generator=self._generator,
                machine=machine,
                others=others,
                strain=self._watches[run.number].strain(),
                generator_strain=generator_strain,
                descriptors=most_used(run.pids),
            )
            for run in self._up
        }

    def _own(self) -> set[int]:
        """All processes of the experiment."""
        supervisor = self._processes.pid
        pids = (pid for run in self._up for pid in run.pids)
        return {os.getpid(), supervisor, *descendants(supervisor), *pids}


def _pods_of(run: Run, of_plan: Sequence[Pod]) -> Sequence[Pod]:
    """The pods of a run: those of its environment, or on this host those of the plan."""
    file = run.environment.manifest()
    if file is None:
        return of_plan if run.environment.settings.type == "host" else ()
    found = read(file)
    return () if isinstance(found, str) else found
