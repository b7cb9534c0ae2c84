# SPDX-License-Identifier: Apache-2.0
"""Environments, one file each: where a service runs."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from tare.lab.environments.bridge_network import BridgeNetwork
from tare.lab.environments.container import Container
from tare.lab.environments.container_in_vm import ContainerInVm
from tare.lab.environments.environment import Environment
from tare.lab.environments.host import Host
from tare.lab.environments.netns import Netns
from tare.lab.environments.pod import Pod
from tare.lab.environments.pods_across_nodes import PodsAcrossNodes
from tare.lab.environments.vm import MACHINES, Vm
from tare.lab.processes.processes import Processes
from tare.plan import Plan, expected, refused
from tare.plan.schema.environments import (
    ContainerEnvironment,
    EnvironmentBase,
    GuestEnvironment,
)

_TYPES: dict[str, type[Environment]] = {
    "host": Host,
    "netns": Netns,
    "container": Container,
    "pod": Pod,
    "pods-across-nodes": PodsAcrossNodes,
    "vm": Vm,
    "container-in-vm": ContainerInVm,
}


WITH_CONTAINERS = ("host", "netns", "container")
"""Environments in which a service can have a container of its own with an image."""


def check(plan: Plan) -> None:
    """Raises InputError if this machine cannot provide an environment of the plan, or containers
    for what the service needs."""
    _check_containers(plan)
    for number, error in _missing(resolved(plan)).items():
        raise refused(plan, ("environments", number), error)


def resolved(plan: Plan, begun_with: Mapping[str, str] = {}) -> Plan:
    """The plan with the machine of each virtual machine, as far as it leaves the choice, and the
    machine in the name of the environment.

    `begun_with` has the machines of an experiment that goes on, by the environment's name. Raises
    InputError if two environments then have one name.
    """
    found = [_resolved(settings, begun_with) for settings in plan.environments]
    names = [settings.name for settings in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            error = expected(f"different names of environments, not {name} twice")
            raise refused(plan, ("environments", number), error)
    changed: dict[str, Any] = {"environments": found}
    if plan.compare == "environments":
        changed["baseline"] = names[plan.environment_names.index(plan.baseline_name)]
    return plan.model_copy(update=changed)


def _resolved(settings: EnvironmentBase, begun_with: Mapping[str, str]) -> EnvironmentBase:
    if not isinstance(settings, GuestEnvironment) or settings.machine is not None:
        return settings
    chosen = [settings.of(machine) for machine in MACHINES]
    for guest in chosen:
        if begun_with.get(guest.name) == guest.machine:
            return guest
    return next((guest for guest in chosen if _why_missing(guest) is None), chosen[0])


def available(plan: Plan) -> tuple[Plan, list[str]]:
    """The resolved plan without the environments that need what this machine lacks, and a line for
    each.

    Raises InputError if a setting of an environment is wrong, or if nothing is left to compare.
    """
    _check_containers(plan)
    plan = resolved(plan)
    missing = _missing(plan)
    left = [name for number, name in enumerate(plan.environment_names) if number not in missing]
    compared = plan.compare == "environments"
    too_few = not left or (compared and (len(left) < 2 or plan.baseline_name not in left))
    for number, error in missing.items():
        if too_few or (error.context or {}).get("keys"):
            raise refused(plan, ("environments", number), error)
    skipped = [
        f"environment '{plan.environment_names[number]}' is skipped, since this machine lacks what"
        f" it needs: {error.message()}"
        for number, error in missing.items()
    ]
    return plan.only(left), skipped


def _check_containers(plan: Plan) -> None:
    """Raises InputError if this machine, or an environment, has no containers for a service."""
    for service in plan.all_services:
        if (own := service.table.container) is None:
            continue
        place = (*service.place, "container")
        try:
            Container.check(ContainerEnvironment(type="container", image=own.image))
        except PydanticCustomError as error:
            raise refused(plan, place, error) from error
        kinds = [environment.type for environment in plan.environments]
        unfit = [kind for kind in kinds if kind not in WITH_CONTAINERS]
        if unfit and own.model_fields_set:
            wanted = f"no image or setting of a container in {unfit[0]}; use container or netns"
            raise refused(plan, place, expected(wanted))


def _missing(plan: Plan) -> dict[int, PydanticCustomError]:
    """What is missing for environments of the plan, by their number."""
    found = {}
    for number, settings in enumerate(plan.environments):
        error = _why_missing(settings.in_folder(plan.folder))
        if error is not None:
            found[number] = error
    return found


def _why_missing(settings: EnvironmentBase) -> PydanticCustomError | None:
    try:
        _TYPES[settings.type].check(settings)
    except PydanticCustomError as error:
        return error
    return None


def of_run(
    settings: EnvironmentBase,
    processes: Processes,
    name: str,
    bridge_network: BridgeNetwork | None = None,
) -> Environment:
    """The environment of one run, not prepared yet; `name` is unique among those of the block.

    With a bridge network, it is joined with others of the run.
    """
    return _TYPES[settings.type](settings, processes, name, bridge_network)


def contained(place: Environment, name: str) -> Environment:
    """An environment in the same place whose programs are in containers; `place` itself if they
    are there anyway."""
    match place:
        case Vm():
            return ContainerInVm(place.settings, place.processes, name, guest=place)
        case Host():
            settings = ContainerEnvironment(type="container", name=place.settings.name)
            return Container(settings, place.processes, name, network=place)
        case _:
            return place
