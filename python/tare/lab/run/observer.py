# SPDX-License-Identifier: Apache-2.0
"""Reads the machine around the load of runs, for the checks of recommendations."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tare.lab.environments.launch import RunError
from tare.lab.machine import concurrent_runs
from tare.lab.machine.descriptors import most_used
from tare.lab.machine.saturation import Saturation, Watch
from tare.lab.processes.supervisor import descendants
from tare.lab.recommendations.observations import Namespaces, RunObservations
from tare.lab.recommendations.other_programs import CpuTimes, between, cpu_times
from tare.lab.recommendations.pods import Pod, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tare.lab.processes.processes import Family, Processes
    from tare.lab.start.runs import Run
    from tare.plan import Plan
    from tare.samples.manifest import Facts

FIRST_LOOK_S, LOOK_S = 0.05, 1.0
"""From one look at the processes of the load generator to the next, at first and at most."""


class Observer:
    """Reads the machine around the load of the runs that are up at the same time."""

    def __init__(self, processes: Processes, up: Sequence[Run]) -> None:
        self._processes, self._up = processes, up
        pids = {run.number: run.pids for run in up}
        self._namespaces = {number: Namespaces.of(mine) for number, mine in pids.items()}
        self._watches = {run.number: run.environment.watch(pids[run.number]) for run in up}
        self._generator: Namespaces | None = None
        # Runs that are up at the same time have one generator.
        first = up[0].environment if up else None
        self._generator_watch = (
            Watch([], quota_only=True) if first is None else first.watch_generator()
        )
        self._is_remote = first is not None and first.settings.is_remote
        self._next_look, self._pause_s = 0.0, FIRST_LOOK_S
        self._before, self._own_before = cpu_times(), self._own()

    def look(self, family: Callable[[], Family]) -> None:
        """Looks at the processes of the load generator; call it often while it runs."""
        if self._is_remote or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LOOK_S)
        found = family()
        if living := Namespaces.of(found.pids):
            self._generator = living
        elif self._generator is None and found.first is not None:
            # It had ended before this program got a CPU: the supervisor's were its own.
            here = Namespaces.of([self._processes.pid])
            self._generator = here and replace(here, pid=found.first.pid)
        self._generator_watch.look(found.pids)

    def end(self, plan: Plan, pods: Sequence[Pod], machine: Facts) -> dict[int, RunObservations]:
        """What was read, by the number of the run; call it while the services are still up."""
        after: CpuTimes = cpu_times()
        others = between(
            self._before, after, self._own_before, self._own(), len(concurrent_runs.others())
        )
        generator_saturation = self._generator_watch.saturation()
        return {
            run.number: RunObservations(
                plan=plan,
                condition=run.condition,
                address=run.environment.address,
                pods=_pods_of(run, pods),
                started_by_plan=run.environment.settings.type == "host",
                service=self._namespaces[run.number],
                generator=self._generator,
                machine=machine,
                is_remote=run.environment.settings.is_remote,
                others=None if run.environment.settings.is_remote else others,
                saturation=_with_kills(self._watches[run.number].saturation(), run),
                generator_saturation=generator_saturation,
                descriptors=most_used(run.pids),
            )
            for run in self._up
        }

    def _own(self) -> set[int]:
        """All processes of the experiment."""
        supervisor = self._processes.pid
        pids = (pid for run in self._up for pid in run.pids)
        return {os.getpid(), supervisor, *descendants(supervisor), *pids}


def _with_kills(found: Saturation, run: Run) -> Saturation:
    """The same with the processes that the kernels of guests killed."""
    killed = 0
    for place in run.places.environments:
        with suppress(RunError):  # a guest that has ended makes the run invalid
            killed += place.oom_kills()
    if not killed:
        return found
    name = "oom_kills"
    counters = {**found.counters, name: found.counters.get(name, 0) + killed}
    return replace(found, counters=counters)


def _pods_of(run: Run, of_plan: Sequence[Pod]) -> Sequence[Pod]:
    """The pods of a run: those of its environment, or on this host those of the plan."""
    file = run.environment.manifest()
    if file is None:
        return of_plan if run.environment.settings.type == "host" else ()
    found = read(file)
    return () if isinstance(found, str) else found
