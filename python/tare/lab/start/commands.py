# SPDX-License-Identifier: Apache-2.0
"""Whether the programs and the folder that a plan names are on this machine."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tare.lab.processes.processes import find
from tare.lab.start import replicas
from tare.plan import CommandLoad, Plan, Service, expected, refused
from tare.plan.schema.layers import AgentLayer, EnvLayer, WrapLayer
from tare.plan.schema.placeholders import fill
from tare.plan.schema.services import NeededService, PlacedService

KeyPath = tuple[str | int, ...]


def check(plan: Plan) -> None:
    """Raises InputError, with its place in the plan, for a program or folder that is not there.

    Only the word that the lab itself starts can be known to be a program of this machine: what
    stands behind a wrapper may be a program of a container. What only a run knows, such as {dir},
    is left to the run. So are the service's program and folder if no environment has the files of
    this machine.
    """
    elsewhere = all(environment.has_own_files for environment in plan.environments)
    for service in plan.all_services:
        if not elsewhere and service.table.image is None:
            _check_service(plan, service)
        _check_mounts(plan, service)
    for service in plan.all_services:
        if isinstance(service.table, NeededService) and service.table.names_of_replicas:
            where = (*service.place, "replicas")
            _check_program(plan, where, [replicas.PROGRAM], Path("{dir}"), os.environ)
    for number, condition in enumerate(plan.conditions):
        for position, layer in enumerate(condition.layers):
            if isinstance(layer, AgentLayer):
                for key in ("start", "ready", "stop"):
                    if (agent := getattr(layer, key)) is not None:
                        where = ("conditions", number, "layers", position, key)
                        _check_program(plan, where, agent, Path("{dir}"), os.environ)
    if isinstance(plan.load, CommandLoad):
        place = ("load", plan.load.type, "command")
        _check_program(plan, place, plan.load.command, Path("{dir}"), os.environ)


def _check_service(plan: Plan, placed: PlacedService) -> None:
    """Checks the folder of a service, and the program that it has in each condition."""
    service = placed.table
    folder = fill(service.directory, {"plan": plan.folder})
    if "{dir}" not in folder and not Path(folder).is_dir():
        error = expected(f"an existing folder ({folder} does not exist)")
        raise refused(plan, (*placed.place, "directory"), error)
    for number, condition in enumerate(plan.conditions):
        words = service.command
        place: KeyPath = (*placed.place, "command")
        variables = {**os.environ, **service.environment}
        for position, layer in enumerate(condition.layers):
            if layer not in condition.layers_at(placed.role):
                continue
            if isinstance(layer, WrapLayer):
                words = layer.command
                place = ("conditions", number, "layers", position, "command")
            elif isinstance(layer, EnvLayer):
                variables |= layer.variables
        _check_program(plan, place, words, Path(folder), variables, files=service.files)


def _check_mounts(plan: Plan, placed: PlacedService) -> None:
    mounts = {} if placed.table.container is None else placed.table.container.mounts
    for target, source in mounts.items():
        path = plan.folder / fill(source, {"plan": plan.folder})
        if "{dir}" not in source and not path.exists():
            error = expected(f"a file or folder ({path} does not exist)")
            raise refused(plan, (*placed.place, "container", "mounts", target), error)


def misplaced(plan: Plan, service: Service) -> str | None:
    """What to write where a service's command names a file of the plan's folder, as if it ran
    there; None where it does not, or runs there."""
    if service.directory != "{dir}":
        return None
    for word in service.command:
        is_own = "{" in word or word.startswith(("-", "/")) or word in service.files
        # Path.is_file raises for a word as long as a script.
        if not is_own and os.path.isfile(plan.folder / word):  # noqa: PTH113
            return f"the service runs in a new folder: write {{plan}}/{word} instead of {word}"
    return None


def _check_program(
    plan: Plan,
    place: KeyPath,
    words: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    files: Collection[str] = (),
) -> None:
    program = fill(words[0], {"plan": plan.folder})
    if "/" in program:
        is_written = os.path.normpath(program) in files
        program = str(folder / program)
        if str(folder) == "{dir}" and "{" not in words[0] and words[0][0] != "/" and not is_written:
            wanted = f"{{plan}}/{os.path.normpath(words[0])}: programs run in a new folder"
            raise refused(plan, place, expected(wanted))
    if "{dir}" not in program and find(program, variables) is None:
        raise refused(plan, place, expected(f"a program: {program} is not installed"))
