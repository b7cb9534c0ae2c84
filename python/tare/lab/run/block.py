# SPDX-License-Identifier: Apache-2.0
"""One group of a block: what is up together, from fresh start to stored runs."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab import layers, recommendations
from tare.lab.environments.launch import RunError
from tare.lab.load import generators as loads
from tare.lab.load.generators import LoadContext
from tare.lab.load.tare_load import url
from tare.lab.machine import saturation
from tare.lab.machine.host import Host
from tare.lab.machine.sampler import Sampler, Source
from tare.lab.machine.service import Service
from tare.lab.pipeline.pipeline import Pipeline
from tare.lab.processes.processes import Family, StartError
from tare.lab.result.folder import RunKey
from tare.lab.result.measured import Measured
from tare.lab.result.streams import read_stream
from tare.lab.run.collected_spans import CollectedSpans
from tare.lab.run.observer import Observer
from tare.lab.start import replicas
from tare.lab.start.laboratory import Laboratory
from tare.lab.start.places import Places
from tare.lab.start.runs import Run, Target
from tare.lab.start.service import (
    Started,
    blamed,
    finish_start,
    start_needed,
    start_service,
    target,
)
from tare.lab.validity import (
    crashes,
    failed_requests,
    request_rate,
    resource_limits,
    unusable_output,
)
from tare.plan import OwnLoad
from tare.plan.schema.alternation import of_service
from tare.samples.manifest import RunEntry

if TYPE_CHECKING:
    import pyarrow as pa

LOG_TAIL_LINES = 20
MACHINE = "/"
"""The machine among the sources of metrics; no run has this name."""


class Group:
    """What is compared in one block and group of the plan, and up at the same time."""

    def __init__(
        self, lab: Laboratory, block: int, group: str, pipeline: Pipeline | None = None
    ) -> None:
        self.lab, self.block, self.group = lab, block, group
        self.spans = CollectedSpans(pipeline)
        self.sampler: Sampler | None = None
        """Reads machine and services while they have load."""
        self.look: Callable[[Callable[[], Family]], None] = lambda _: None
        """Is given the processes of the load generator while it runs."""

    def measure(
        self, compared: Sequence[tuple[int, str]], asked: float | None, seed: int
    ) -> list[tuple[RunEntry, list[str]]]:
        """Starts every service, loads those that are ready, stops all, stores what was measured.

        `compared` are runs by number and name, in the order of their start; `asked` is the
        rate. Returns the manifest's entries, one a run, valid or not, with files already in their
        place; and what was odd about each.
        """
        runs = [self.run(number, name) for number, name in compared]
        with ExitStack() as stack:
            up = self.start(stack, runs)
            if up:
                with self.observed(up):
                    self.load(up, asked, seed)
                assert self.sampler is not None
                for run in up:
                    run.metrics = metrics_of(self.sampler, run)
            self.look_for_crashes(up)
        if asked is not None:
            load = self.lab.plan.load
            assert isinstance(load, OwnLoad)
            # The slices of a service by itself follow each other without a gap.
            several = sum(run.measured is not None for run in runs) > 1
            self.check_rate(asked, runs, load.slice if several else None)
        return self.store_all(runs)

    def load(self, up: Sequence[Run], asked: float | None, seed: int) -> None:
        """Loads the services of some runs. Raises RunError where none can count."""
        targets = targets_of(up)
        found = loads.measure(self.lab.plan.load, asked, seed, targets, self.context(up))
        for run, measured in zip(up, found, strict=True):
            run.measured = measured

    def store_all(self, runs: Sequence[Run]) -> list[tuple[RunEntry, list[str]]]:
        """Stores what was measured of every run; see `measure`."""
        entries = [self.store(run) for run in runs]
        if not all(entry.valid for entry in entries):
            # What a full disk does to a run says nothing about its condition.
            self.lab.folder.require_free_space()
        self.lab.folder.clear_work()
        return [(entry, run_notes(run)) for entry, run in zip(entries, runs, strict=True)]

    def capacity(self, name: str) -> dict[str, Any]:
        """The most that a service bears without layers that take turns. Raises RunError where it
        cannot be measured."""
        run = self.run(0, name)
        run.condition = run.condition.model_copy(update={"layers": of_service(run.condition)})
        with ExitStack() as stack:
            up = self.start(stack, [run])
            if not up:
                raise RunError(f"capacity of {name}: {run.reason}")
            assert isinstance(self.lab.plan.load, OwnLoad)
            return loads.capacity(self.lab.plan.load, targets_of(up)[0], self.context(up))

    def run(self, number: int, name: str) -> Run:
        """A run of this group that was not started yet."""
        settings, condition = self.lab.plan.place(self.group, name)
        unique = f"{self.block}/{self.group}/{name}"
        places = Places(self.lab.plan, settings, self.lab.processes, unique)
        return Run(number, name, condition, settings, places)

    def start(self, stack: ExitStack, runs: Sequence[Run]) -> list[Run]:
        """Starts the services of runs in this order; returns the runs that became ready.

        When `stack` closes, all programs are stopped at once, what they wrote is copied out, and
        their environments are removed.
        """
        stack.callback(self.lab.processes.sweep)
        for run in runs:
            stack.callback(run.places.stop)
            stack.push(partial(self.spans.close, run))
            stack.callback(copy_out, run)
        stack.callback(
            lambda: self.lab.processes.stop([process for run in runs for process in run.processes])
        )
        started = [(run, self.start_services(run)) for run in runs]
        begun = time.monotonic()
        for run, service in started:
            if service is None:
                continue
            try:
                with blamed(run, service.log):
                    finish_start(self.lab, run, service, begun, partial(self.new_log, run))
                run.target = target(run, service)
            except RunError as error:
                run.reason = str(error)
                # What will not be measured must not disturb what is.
                self.lab.processes.stop(run.processes)
            else:
                # While it became ready, those behind it may have had no CPU. While it did not,
                # their own time went by.
                begun = time.monotonic()
        return [run for run in runs if run.target]

    def start_services(self, run: Run) -> Started | None:
        """Starts what a run needs, and its service, which may not be ready; None if this fails."""
        *needed, service = replicas.expanded(self.lab.plan)
        log = self.new_log(run)
        try:
            folders = {
                placed.name: self.new_folder(run, placed.name) for placed in (*needed, service)
            }
            run.places.prepare(folders)
            self.spans.open(run, self.new_folder(run, "+spans"), partial(self.empty_log, run))
            start_needed(self.lab, run, needed, folders, partial(self.new_log, run))
            with blamed(run, log):
                return start_service(self.lab, run, service, folders[None], log)
        except (RunError, StartError) as error:
            run.reason = str(error)
            self.lab.processes.stop(run.processes)
            return None

    def new_folder(self, run: Run, service: str | None) -> Path:
        """An empty folder for a service of a run."""
        name = f"{self.block}-{self.group}-{run.name}"
        return self.lab.folder.fresh_work(name if service is None else f"{name}+{service}")

    def new_sampler(self, up: Sequence[Run]) -> Sampler:
        """Begins to read the metrics of this machine and of each service with its proxies."""
        services: dict[str, Source] = {
            run.name: Service(run.pids, interfaces=run.interfaces).read for run in up
        }
        if any(run.environment.settings.is_remote for run in up):
            # This machine is not where they run.
            return Sampler(dict.fromkeys((MACHINE, *services), lambda _: None))
        return Sampler({MACHINE: Host(self.lab.cpus).read, **services})

    def tick(self, seconds: float) -> None:
        """Is called about ten times per second while services have load."""
        self.lab.tick(seconds)
        if self.sampler is not None:
            self.sampler.look()

    def sample(self) -> None:
        """Ends a reading of the metrics, and begins the next."""
        if self.sampler is not None:
            self.sampler.sample()

    @contextmanager
    def observed(self, up: Sequence[Run]) -> Iterator[None]:
        """Reads the machine around a load, and marks the runs that reached a limit.

        If the load raises RunError, it is the reason of all runs.
        """
        observer = Observer(self.lab.processes, up)
        self.look = observer.look
        self.sampler = self.new_sampler(up)
        try:
            yield
        except RunError as error:
            for run in up:
                run.reason = str(error)
        self.sample()
        found = observer.end(self.lab.plan, self.lab.pods, self.lab.folder.manifest.machine)
        for run in up:
            run.observations = found[run.number]
            run.saturation = run.observations.saturation
            for reason in resource_limits.invalid_reasons(
                run.saturation,
                run.observations.generator_saturation,
                run.observations.descriptors,
            ):
                run.fail(reason)

    def look_for_crashes(self, up: Sequence[Run]) -> None:
        """Marks the runs whose service or proxy ended while it was measured."""
        self.lab.processes.wait(0)
        for run in up:
            service = None if run.target is None else run.target.process
            if reason := crashes.invalid_reason(run.processes, service):
                run.reason = reason

    def store(self, run: Run) -> RunEntry:
        """Writes the files of one run and returns its entry in the manifest."""
        lab, found = self.lab, run.measured
        environment, condition = run.environment.settings.name, run.condition.name
        key = RunKey(lab.experiment, environment, condition, self.block, run.number, lab.host)
        if costs := self.store_costs(run, key):
            run.observations = run.observations and replace(run.observations, costs=costs)
        started = duration = collected = None
        if found is not None:
            started, ended = found.extent()
            spans, collected = self.spans.of_run(run)
            lab.folder.write("samples", joined(found.samples, spans), key)
            self.store_machine(run, found, key)
            if started is not None and ended is not None:
                duration = max(ended - started, 0)
            self.check_errors(run, found)
        return RunEntry(
            run=run.number,
            block=self.block,
            environment=environment,
            condition=condition,
            valid=run.reason is None,
            reason=run.reason,
            log_tail=log_tail(run) if run.reason else [],
            logs=[str(log.relative_to(lab.folder.path)) for log in run.logs],
            started_ns=started,
            duration_ns=duration,
            requests=found.requests if found else 0,
            errors=found.errors if found else 0,
            endpoint=url(lab.plan.load, run.launch) if run.launch else None,
            cpu={**found.cpu} if found else {},
            recommendations=recommendations.of_run(run.observations) if run.observations else [],
            collected=collected,
        )

    def store_machine(self, run: Run, found: Measured, key: RunKey) -> None:
        """Writes what the machine did meanwhile, per slice and per second."""
        import pyarrow as pa

        readings = [] if found.machine is None else [found.machine]
        if run.metrics is not None:
            readings.append(run.metrics)
        if readings:
            together = pa.concat_tables(readings, promote_options="permissive")
            self.lab.folder.write("machine", together, key)

    def store_costs(self, run: Run, key: RunKey) -> "Mapping[str, pa.Table | None]":
        """Writes what the layers of a run cost, checks that they were there, and returns it."""
        import pyarrow as pa

        found = {layer: read_stream(path) for layer, path in costs_of(run).items()}
        tables = [costs for costs in found.values() if costs is not None]
        if tables:
            together = pa.concat_tables(tables, promote_options="permissive")
            self.lab.folder.write("costs", together, key)
        check_costs(run, found)
        return found

    def check_errors(self, run: Run, found: Measured) -> None:
        """Marks a run with more errors than the plan allows, or whose times say nothing."""
        load = self.lab.plan.load
        for check in (failed_requests, unusable_output):
            if reason := check.invalid_reason(found, load):
                run.fail(reason)

    def check_rate(self, asked: float, runs: Sequence[Run], slice_ns: int | None) -> None:
        """Marks the runs that had another load than the plan's."""
        for run in runs:
            found = run.measured
            if (
                found is not None
                and found.machine is not None
                and found.requests
                and (
                    reason := request_rate.invalid_reason(
                        asked, found.samples, found.machine, slice_ns
                    )
                )
            ):
                run.fail(reason)

    def context(self, up: Sequence[Run]) -> LoadContext:
        """Where and how the load of this group runs."""
        log = self.new_log(up[0] if len(up) == 1 else None, "load")
        folder = self.lab.folder.fresh_work("load")
        cpus = self.lab.placement.generator
        inside = up[0].environment if up[0].environment.settings.has_generator else None
        return LoadContext(self.lab.processes, cpus, folder, log, self.tick, self.look, inside)

    def new_log(self, run: Run | None, part: str = "") -> Path:
        """An empty log of a run's service, or of something else that belongs to it or to all."""
        log = self.empty_log(run, part)
        if run is not None:
            run.logs.append(log)
        return log

    def empty_log(self, run: Run | None, part: str = "") -> Path:
        """An empty log that no failure of a run is explained by."""
        name = "" if run is None else run.name
        # No name has a plus or an at sign.
        name = f"{name}+{part}" if part else name
        if len(self.lab.plan.groups) > 1:
            name = f"{name}@{self.group}"
        return self.lab.folder.log(self.block, name)


def targets_of(up: Sequence[Run]) -> list[Target]:
    """Where the load of runs goes that are ready."""
    return [run.target for run in up if run.target]


def metrics_of(sampler: Sampler, run: Run) -> "pa.Table":
    """What was read of the machine and of one service."""
    return sampler.table({MACHINE: "machine", run.name: "service"})


def copy_out(run: Run) -> None:
    """Brings what the programs of a run wrote to this host."""
    try:
        for launch in run.launches.values():
            launch.environment.copy_out([launch.folder])
    except RunError as error:
        run.fail(str(error))


def costs_of(run: Run) -> dict[str, Path]:
    """The streams of `costs` of a run, by layer; at a service without the load, the name of
    the service follows (`spans users`)."""
    return {
        layer if service is None else f"{layer} {service}": path
        for service, launch in run.launches.items()
        for layer, path in launch.costs.items()
    }


def joined(samples: "pa.Table", spans: "pa.Table | None") -> "pa.Table":
    """The samples of a load and the spans of the service as one table."""
    import pyarrow as pa

    if spans is None:
        return samples
    return pa.concat_tables([samples, spans], promote_options="permissive")


def check_costs(run: Run, found: Mapping[str, "pa.Table | None"]) -> None:
    """Marks a run that had a layer missing."""
    for layer, costs in found.items():
        if reason := layers.invalid_reason(layer, costs):
            run.fail(reason)


def run_notes(run: Run) -> list[str]:
    """What must be known of a run besides why it may be invalid."""
    if run.measured is None:
        return []
    told = saturation.notes(run.saturation) if run.saturation and run.reason is None else []
    return [*run.measured.notes, *told]


def log_tail(run: Run) -> list[str]:
    """The last lines of the log of what failed; if it is not known, of all logs of the run."""
    tail: list[str] = []
    for log in run.logs if run.failed_log is None else [run.failed_log]:
        tail += log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
    return tail
