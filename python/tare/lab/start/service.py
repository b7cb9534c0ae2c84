# SPDX-License-Identifier: Apache-2.0
"""Starts the services of a run in their environments, with their layers around them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tare.atomic_files import named
from tare.lab import layers
from tare.lab.environments.environment import Program
from tare.lab.environments.launch import Launch, RunError
from tare.lab.processes.processes import Process, StartError
from tare.lab.start import commands, replicas
from tare.lab.start.laboratory import Laboratory
from tare.lab.start.ready import wait_until_ready
from tare.lab.start.runs import Run, Running, Target
from tare.plan import Ready
from tare.plan.schema.layers import ProxyLayer
from tare.plan.schema.services import READY_AT_ONCE, OwnContainer, PlacedService


@dataclass(frozen=True)
class Started:
    """A service that may not be ready yet."""

    service: PlacedService
    launch: Launch
    process: Process
    log: Path
    ready: Ready


def start_needed(
    lab: Laboratory,
    run: Run,
    services: Iterable[PlacedService],
    folders: Mapping[str | None, Path],
    new_log: Callable[[str], Path],
) -> None:
    """Starts the services that another service needs, and returns when all are ready.

    Each waits for those that it needs itself; the others above it become ready meanwhile. A service
    with a fixed port is waited for at once, since others can use it without naming it. Raises
    RunError or StartError if one of them fails.
    """
    starting: dict[str, Started] = {}

    def finish(name: str) -> None:
        started = starting.pop(name)
        with blamed(run, started.log, name):
            finish_start(lab, run, started, None, lambda part: new_log(f"{name}-{part}"))

    for service in services:
        name, table = service.name, service.table
        assert name is not None
        for needed in [key for key in starting if key in table.needs]:
            finish(needed)
        log = new_log(name)
        with blamed(run, log, name):
            started = start_service(lab, run, service, folders[name], log)
        starting[name] = started
        if table.port is not None:
            finish(name)
    for name in [*starting]:
        finish(name)


@contextmanager
def blamed(run: Run, log: Path, service: str | None = None) -> Iterator[None]:
    """Marks the log of what failed: `log`, or the log of a proxy that was started meanwhile.

    Raises RunError whose message begins with the name of the service, if it has a name.
    """
    before = len(run.logs)
    try:
        yield
    except (RunError, StartError) as error:
        run.failed_log = run.logs[-1] if len(run.logs) > before else log
        raise RunError(str(error) if service is None else f"{service}: {error}") from error


def start_service(
    lab: Laboratory, run: Run, service: PlacedService, folder: Path, log: Path
) -> Started:
    """Writes a service's files into `folder`, and starts it in its environment.

    Raises RunError or StartError if this fails.
    """
    table, environment = service.table, run.places.of[service.name]
    image = environment.image_of(table.container)
    around = run.condition.layers_at(service.role)
    port, ready = table.port, table.ready
    if table.image is not None and table.listens_where_its_image_says(around):
        assert image is not None
        port = image.ports[0] if len(image.ports) == 1 else None
        if port is None and "ready" not in table.model_fields_set:
            ready = READY_AT_ONCE
    port = environment.port(port)
    # The folder of the load is made later, below that of all.
    written = lab.folder.work if environment.settings.has_generator else folder
    proxies = sum(isinstance(layer, ProxyLayer) for layer in around)
    environment.announce([written], [lab.plan.folder], proxies)
    others = {name: launch for name, launch in run.launches.items() if name is not None}
    launch = Launch(
        environment, folder, lab.plan.folder, [], {}, port, port, needed=others,
        traces_to=run.traces_to,
    )  # fmt: skip
    launch.command = [
        launch.filled(word)
        for word in table.command or (image.command(table.container) if image else ())
    ]
    launch.variables = {name: launch.filled(text) for name, text in table.environment.items()}
    for name, text in table.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with named(file):
            file.write_text(launch.filled(text), encoding="utf-8")
    layers.put(around, launch)
    run.launches[service.name] = launch
    environment.copy_in([written], read_only=[lab.plan.folder])
    directory = Path(launch.filled(table.directory))
    if "directory" not in table.model_fields_set and image is not None:
        directory = image.directory or directory
    started = environment.start(
        Program(
            run.places.unique(service.name),
            launch.command,
            directory=directory,
            log=log,
            cpus=lab.placement.service,
            variables=launch.variables,
            stop_signal=table.stop_signal,
            grace_s=table.stop_timeout / 1e9,
            proxies=launch.proxies,
            container=_with_paths(table.container, launch),
            is_of_lab=service.role == replicas.BALANCER,
        )
    )
    run.programs.append(Running(started, environment))
    return Started(service, launch, started, log, ready)


def _with_paths(container: OwnContainer | None, launch: Launch) -> OwnContainer | None:
    """The same with absolute paths of this machine."""
    if container is None:
        return None
    mounts = {
        path: str(launch.plan_folder / launch.filled(source))
        for path, source in container.mounts.items()
    }
    return container.model_copy(update={"mounts": mounts})


def finish_start(
    lab: Laboratory, run: Run, started: Started, since: float | None, new_log: Callable[[str], Path]
) -> None:
    """Waits until a service is ready, then starts its proxies, the nearest first.

    The service's time to become ready counts from `since`, or from now. Raises RunError or
    StartError if one of them does not start.
    """
    table, launch, service = started.service.table, started.launch, started.process
    environment, ready = launch.environment, started.ready

    def wait(ready: Ready, process: Process, port: int, log: Path, since: float | None) -> None:
        wait_until_ready(
            ready, process, lab.processes, address=environment.address, port=port, log=log,
            since=since, environment=environment,
        )  # fmt: skip

    try:
        wait(ready, service, launch.port, started.log, since)
    except RunError as error:
        if service.code and (hint := commands.misplaced(lab.plan, table)):
            raise RunError(f"{error}; {hint}") from error
        raise
    for proxy in launch.proxies:
        log = new_log(proxy.name)
        companion = environment.start(
            Program(
                f"{service.name}/{proxy.name}",
                proxy.command,
                directory=launch.folder,
                log=log,
                cpus=lab.placement.service,
                is_of_lab=True,
            )
        )
        run.programs.append(Running(companion, environment))
        try:
            wait(ready.of_proxies, companion, proxy.port, log, None)
        except RunError as error:
            raise RunError(f"{proxy.name}: {error}") from error


def target(run: Run, started: Started) -> Target:
    """The service of a run that is ready, with all that it needs."""
    return Target(run.name, started.launch, started.process, run.programs)
