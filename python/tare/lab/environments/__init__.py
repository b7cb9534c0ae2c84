# SPDX-License-Identifier: Apache-2.0
"""Environments, one file each: where a service runs."""

from pydantic_core import PydanticCustomError

from tare.lab.environments.container import Container
from tare.lab.environments.environment import Environment
from tare.lab.environments.host import Host
from tare.lab.environments.netns import Netns
from tare.lab.environments.pod import Pod
from tare.lab.processes import Processes
from tare.plan import Plan, refused
from tare.plan.environments import EnvironmentBase

_TYPES: dict[str, type[Environment]] = {
    "host": Host,
    "netns": Netns,
    "container": Container,
    "pod": Pod,
}


def check(plan: Plan) -> None:
    """Raises InputError if this machine cannot provide an environment of the plan."""
    for number, settings in enumerate(plan.environments):
        try:
            _TYPES[settings.type].check(settings.in_folder(plan.folder))
        except PydanticCustomError as error:
            raise refused(plan, ("environments", number), error) from error


def of_run(settings: EnvironmentBase, processes: Processes, name: str) -> Environment:
    """The environment of one run, not prepared yet; `name` is unique among those of the block."""
    return _TYPES[settings.type](settings, processes, name)
