# SPDX-License-Identifier: Apache-2.0
"""Starts the service of a run in its environment, with its layers around it."""

from collections.abc import Callable
from pathlib import Path

from tare.files import named
from tare.lab import layers
from tare.lab.environments.environment import Program
from tare.lab.environments.launch import Launch, RunError
from tare.lab.processes.processes import Process
from tare.lab.start import commands
from tare.lab.start.laboratory import Laboratory
from tare.lab.start.ready import wait_until_ready
from tare.lab.start.runs import Run, Target
from tare.plan import Ready


def start_service(lab: Laboratory, run: Run, folder: Path, log: Path) -> None:
    """Writes the service's files into `folder`, and starts the service in its environment.

    Raises RunError or StartError if this fails.
    """
    service, environment = lab.plan.service, run.environment
    port = environment.port(service.port)
    launch = Launch(environment, folder, lab.plan.folder, [], {}, port, port)
    launch.command = [launch.filled(word) for word in service.command]
    launch.variables = {name: launch.filled(text) for name, text in service.environment.items()}
    for name, text in service.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with named(file):
            file.write_text(launch.filled(text), encoding="utf-8")
    layers.put(run.condition.layers, launch)
    run.launch = launch
    # The folder of the load is made later, below that of all.
    written = lab.folder.work if environment.settings.has_generator else folder
    environment.copy_in([written], read_only=[lab.plan.folder])
    started = environment.start(
        Program(
            environment.name,
            launch.command,
            directory=Path(launch.filled(service.directory)),
            log=log,
            cpus=lab.placement.service,
            variables=launch.variables,
            stop_signal=service.stop_signal,
            grace_s=service.stop_timeout / 1e9,
            proxies=launch.proxies,
        )
    )
    run.programs.append(started)


def finish_start(lab: Laboratory, run: Run, since: float, new_log: Callable[[str], Path]) -> Target:
    """Waits until the service of a run is ready, then starts its proxies, the nearest first.

    The service's time to become ready counts from `since`. Raises RunError or StartError if one
    of them does not start.
    """
    ready, launch = lab.plan.service.ready, run.launch
    assert launch is not None
    environment = launch.environment

    def wait(ready: Ready, process: Process, port: int, log: Path, since: float | None) -> None:
        wait_until_ready(
            ready, process, lab.processes, address=environment.address, port=port, log=log,
            since=since, environment=environment,
        )  # fmt: skip

    service = run.programs[0]
    try:
        wait(ready, service, launch.port, run.logs[0], since)
    except RunError as error:
        if service.code and (hint := commands.misplaced(lab.plan)):
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
            )
        )
        run.programs.append(companion)
        through = ready if ready.log is None else Ready(tcp=True, timeout=ready.timeout)
        try:
            wait(through, companion, proxy.port, log, None)
        except RunError as error:
            raise RunError(f"{proxy.name}: {error}") from error
    return Target(run.name, launch, service, run.programs[1:])
