# SPDX-License-Identifier: Apache-2.0
"""One group of a block: conditions that are up together, from fresh start to stored runs."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.files import named
from tare.lab import commands, environments, layers, rate, strain
from tare.lab import load as loads
from tare.lab.environments.environment import Environment, Program
from tare.lab.launch import Launch, RunError
from tare.lab.load import Bench, Measured, Target
from tare.lab.load_errors import most_frequent
from tare.lab.placement import Placement
from tare.lab.processes import Process, Processes, StartError
from tare.lab.ready import wait_until_ready
from tare.lab.store import ResultFolder, RunKey, read_stream
from tare.lab.tare_load import url
from tare.plan import Condition, OwnLoad, Plan, Ready
from tare.samples.manifest import RunEntry
from tare.samples.usable import too_many_lost

if TYPE_CHECKING:
    import pyarrow as pa

LOG_TAIL_LINES = 20


@dataclass(frozen=True)
class Laboratory:
    """What every block of an experiment shares."""

    plan: Plan
    folder: ResultFolder
    processes: Processes
    placement: Placement
    cpus: list[int]
    """All CPUs that tare was given."""
    experiment: str
    host: str
    tick: Callable[[float], None]
    """Is told the seconds since a group's load began."""


class Group:
    """The conditions of one block and environment that are up at the same time."""

    def __init__(self, lab: Laboratory, block: int, environment: str) -> None:
        self.lab, self.block, self.environment = lab, block, environment
        self.reasons: dict[str, str] = {}
        """Why conditions cannot count."""
        self.logs: dict[str, list[Path]] = {}
        self.launches: dict[str, Launch] = {}
        self.strains: dict[str, strain.Strain] = {}
        """What the kernel held services back by while they had load."""

    def measure(
        self, runs: Sequence[tuple[int, Condition]], asked: float | None, seed: int
    ) -> list[tuple[RunEntry, list[str]]]:
        """Starts every condition, loads those that are ready, stops all, stores what was measured.

        `runs` are (number, condition) in the order of their start, `asked` is the rate. Returns
        the manifest's entries, one a run, valid or not, with files already in their place; and
        what was odd about each.
        """
        measured: dict[str, Measured] = {}
        with ExitStack() as stack:
            targets = self.start(stack, [condition for _, condition in runs])
            if targets:
                generator, watches = strain.Watch([os.getpid()]), self.watch(targets)
                try:
                    measured = loads.measure(
                        self.lab.plan.load, asked, seed, targets, self.bench(targets)
                    )
                except RunError as error:
                    self.reasons |= {t.condition: str(error) for t in targets}
                self.look_at_strains(watches, generator)
            self.look_for_crashes(targets)
        if asked is not None:
            load = self.lab.plan.load
            assert isinstance(load, OwnLoad)
            # The slices of a service by itself follow each other without a gap.
            self.check_rate(asked, measured, load.slice if len(measured) > 1 else None)
        return self.store_all(runs, measured)

    def store_all(
        self, runs: Sequence[tuple[int, Condition]], measured: dict[str, Measured]
    ) -> list[tuple[RunEntry, list[str]]]:
        """Stores what was measured of every run; see `measure`."""
        entries = [self.store(run, condition, measured) for run, condition in runs]
        if not all(entry.valid for entry in entries):
            # What a full disk does to a run says nothing about its condition.
            self.lab.folder.check_room()
        self.lab.folder.clear_work()
        return [
            (entry, self.oddities(entry.condition, measured.get(entry.condition)))
            for entry in entries
        ]

    def capacity(self, condition: Condition) -> dict[str, Any]:
        """The most that a condition bears. Raises RunError where it cannot be measured."""
        with ExitStack() as stack:
            targets = self.start(stack, [condition])
            if not targets:
                reason = self.reasons[condition.name]
                raise RunError(f"capacity of {condition.name}: {reason}")
            assert isinstance(self.lab.plan.load, OwnLoad)
            return loads.capacity(self.lab.plan.load, targets[0], self.bench(targets))

    def start(self, stack: ExitStack, conditions: Sequence[Condition]) -> list[Target]:
        """Starts conditions in this order; returns those that became ready.

        Everything is stopped when `stack` closes.
        """
        stack.callback(self.lab.processes.sweep)
        prepared: list[Environment] = []
        stack.callback(lambda: [environment.stop() for environment in prepared])
        # With the processes of each: the service, then its proxies.
        started: list[tuple[Condition, list[Process]]] = []
        stack.callback(
            lambda: self.lab.processes.stop([process for _, up in started for process in up])
        )
        for condition in conditions:
            try:
                name = f"{self.block}/{self.environment}/{condition.name}"
                settings = self.lab.plan.environment(self.environment)
                environment = environments.of_run(settings, self.lab.processes, name)
                prepared.append(environment)
                environment.prepare()
                process = self.start_service(condition, environment)
            except (RunError, StartError) as error:
                self.reasons[condition.name] = str(error)
            else:
                started.append((condition, [process]))
        targets = []
        begun = time.monotonic()
        for condition, up in started:
            try:
                self.finish_start(condition, up, begun)
            except (RunError, StartError) as error:
                self.reasons[condition.name] = str(error)
                # What will not be measured must not disturb what is.
                self.lab.processes.stop(up)
            else:
                launch = self.launches[condition.name]
                targets.append(Target(condition.name, launch, up[0], up[1:]))
                # While it became ready, those behind it may have had no CPU. While it did not,
                # their own time went by.
                begun = time.monotonic()
        return targets

    def start_service(self, condition: Condition, environment: Environment) -> Process:
        """Writes the service's files and starts it with its layers around it."""
        service = self.lab.plan.service
        log = self.new_log(condition.name)
        port = environment.port(service.port)
        folder = self.lab.folder.fresh_work(f"{self.block}-{self.environment}-{condition.name}")
        launch = Launch(environment, folder, self.lab.plan.folder, [], {}, port, port)
        launch.command = [launch.filled(word) for word in service.command]
        launch.variables = {name: launch.filled(text) for name, text in service.environment.items()}
        for name, text in service.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with named(file):
                file.write_text(launch.filled(text), encoding="utf-8")
        layers.put(condition.layers, launch)
        self.launches[condition.name] = launch
        environment.copy_in([folder])
        return environment.start(
            Program(
                environment.name,
                launch.command,
                directory=Path(launch.filled(service.directory)),
                log=log,
                cpus=self.lab.placement.service,
                variables=launch.variables,
                stop_signal=service.stop_signal,
                grace_s=service.stop_timeout / 1e9,
            )
        )

    def finish_start(self, condition: Condition, up: list[Process], begun: float) -> None:
        """Waits until a service is ready, then starts its proxies, the nearest first.

        `up` holds the service's process and receives those of its proxies. The service's time to
        become ready counts from `begun`.
        """
        ready = self.lab.plan.service.ready
        launch = self.launches[condition.name]
        service = up[0]
        log = self.logs[condition.name][0]
        try:
            self.wait(ready, service, launch, port=launch.port, log=log, since=begun)
        except RunError as error:
            if service.code and (hint := commands.misplaced(self.lab.plan)):
                raise RunError(f"{error}; {hint}") from error
            raise
        for proxy in launch.proxies:
            log = self.new_log(condition.name, proxy.name)
            companion = launch.environment.start(
                Program(
                    f"{service.name}/{proxy.name}",
                    proxy.command,
                    directory=launch.folder,
                    log=log,
                    cpus=self.lab.placement.service,
                )
            )
            up.append(companion)
            through = ready if ready.log is None else Ready(tcp=True, timeout=ready.timeout)
            try:
                self.wait(through, companion, launch, port=proxy.port, log=log)
            except RunError as error:
                raise RunError(f"{proxy.name}: {error}") from error

    def wait(
        self,
        ready: Ready,
        process: Process,
        launch: Launch,
        *,
        port: int,
        log: Path,
        since: float | None = None,
    ) -> None:
        """Waits until a command is ready at one port of its address; see `wait_until_ready`."""
        processes, address = self.lab.processes, launch.environment.address
        wait_until_ready(
            ready, process, processes, address=address, port=port, log=log, since=since
        )

    def watch(self, targets: Sequence[Target]) -> dict[str, strain.Watch]:
        """Begins to watch each service with its proxies."""
        found = {}
        for target in targets:
            pids = [pid for family in target.families() for pid in family.pids]
            found[target.condition] = strain.Watch(pids)
        return found

    def look_at_strains(self, watches: dict[str, strain.Watch], load: strain.Watch) -> None:
        """Marks the conditions that were held back while they had load."""
        self.strains = {name: watch.strain() for name, watch in watches.items()}
        generator = strain.throttled(load.strain(), "the load generator")
        for name, mine in self.strains.items():
            if why := strain.why_not(mine) or generator:
                self.reasons.setdefault(name, why)

    def look_for_crashes(self, targets: Sequence[Target]) -> None:
        """Marks the conditions whose service or proxy ended while it was measured."""
        self.lab.processes.wait(0)
        for target in targets:
            for process in target.processes:
                if process.code is not None:
                    what = "the service" if process is target.process else process.name
                    self.reasons[target.condition] = f"{what} {process.ending} during the load"

    def store(self, run: int, condition: Condition, measured: dict[str, Measured]) -> RunEntry:
        """Writes the files of one run and returns its entry in the manifest."""
        name = condition.name
        key = RunKey(self.lab.experiment, self.environment, name, self.block, run, self.lab.host)
        found = measured.get(name)
        launch = self.launches.get(name)
        if launch is not None:
            self.store_costs(name, launch, key)
        started = duration = None
        if found is not None:
            self.lab.folder.write("samples", found.samples, key)
            self.store_machine(name, found, key)
            started, ended = found.extent()
            if started is not None and ended is not None:
                duration = max(ended - started, 0)
            self.check_errors(name, found)
        reason = self.reasons.get(name)
        return RunEntry(
            run=run,
            block=self.block,
            environment=self.environment,
            condition=name,
            valid=reason is None,
            reason=reason,
            log_tail=self.log_tail(name) if reason else [],
            logs=[str(log.relative_to(self.lab.folder.path)) for log in self.logs.get(name, ())],
            started_ns=started,
            duration_ns=duration,
            requests=found.requests if found else 0,
            errors=found.errors if found else 0,
            endpoint=url(self.lab.plan.load, launch) if launch else None,
            cpu={**found.cpu} if found else {},
        )

    def store_machine(self, name: str, found: Measured, key: RunKey) -> None:
        """Writes what the machine did meanwhile, slice by slice and over the whole load."""
        import pyarrow as pa

        readings = [] if found.machine is None else [found.machine]
        if name in self.strains:
            readings.append(strain.rows(self.strains[name]))
        if readings:
            together = pa.concat_tables(readings, promote_options="permissive")
            self.lab.folder.write("machine", together, key)

    def store_costs(self, name: str, launch: Launch, key: RunKey) -> None:
        """Writes what the layers of a condition cost, and checks that they were there."""
        import pyarrow as pa

        found = {layer: read_stream(path) for layer, path in launch.costs.items()}
        tables = [costs for costs in found.values() if costs is not None]
        if tables:
            together = pa.concat_tables(tables, promote_options="permissive")
            self.lab.folder.write("costs", together, key)
        self.check_costs(name, found)

    def check_costs(self, name: str, found: Mapping[str, "pa.Table | None"]) -> None:
        """Marks a condition that had a layer missing."""
        for layer, costs in found.items():
            if why := layers.why_not(layer, costs):
                self.reasons.setdefault(name, why)

    def check_errors(self, name: str, found: Measured) -> None:
        """Marks a condition with more errors than the plan bears, or whose times say nothing."""
        limit = self.lab.plan.load.max_errors
        share = found.errors / found.requests if found.requests else 1.0
        if found.requests == 0:
            self.reasons.setdefault(name, "no request was answered within the window")
        elif share > limit:
            most = most_frequent(found, self.lab.plan.load)
            why = f"; most often: {most}" if most else ""
            self.reasons.setdefault(
                name, f"{share:.2%} of the requests failed, above the limit of {limit:.2%}{why}"
            )
        elif lost := found.stepped or too_many_lost(found.lost, limit):
            self.reasons.setdefault(name, lost)

    def check_rate(self, asked: float, measured: dict[str, Measured], slice_ns: int | None) -> None:
        """Marks the conditions that had another load than the plan's; see `rate.why_not`."""
        for name, found in measured.items():
            if (
                found.machine is not None
                and found.requests
                and (why := rate.why_not(asked, found.samples, found.machine, slice_ns))
            ):
                self.reasons.setdefault(name, why)

    def oddities(self, name: str, found: Measured | None) -> list[str]:
        """What must be known of a run besides why it may be invalid."""
        if found is None:
            return []
        held = self.strains.get(name)
        told = strain.told(held) if held and name not in self.reasons else []
        return [*found.oddities, *told]

    def bench(self, targets: Sequence[Target]) -> Bench:
        """Where and how the load of this group runs."""
        log = self.new_log(targets[0].condition if len(targets) == 1 else "", "load")
        folder = self.lab.folder.fresh_work("load")
        cpus = self.lab.placement.generator
        return Bench(self.lab.processes, cpus, folder, log, self.lab.tick)

    def new_log(self, condition: str, part: str = "") -> Path:
        """An empty log of a condition's service, or of something else that belongs to it."""
        # No name of a condition has a plus or an at sign.
        name = f"{condition}+{part}" if part else condition
        if len(self.lab.plan.environments) > 1:
            name = f"{name}@{self.environment}"
        log = self.lab.folder.log(self.block, name)
        self.logs.setdefault(condition, []).append(log)
        return log

    def log_tail(self, condition: str) -> list[str]:
        """The last lines of the logs of a condition."""
        tail: list[str] = []
        for log in self.logs.get(condition, ()):
            tail += log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return tail
