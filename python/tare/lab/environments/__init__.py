# SPDX-License-Identifier: Apache-2.0
"""Environments, one file each: where a service runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from pydantic_core import PydanticCustomError

from tare.lab.environments import host, netns
from tare.lab.launch import Place
from tare.lab.processes import Processes
from tare.plan import Plan, refused
from tare.plan.environments import Environment


class _Environment(NamedTuple):
    check: Callable[[], None]
    enter: Callable[[Processes, str], AbstractContextManager[Place]]


_ENVIRONMENTS = {
    "host": _Environment(host.check, host.enter),
    "netns": _Environment(netns.check, netns.enter),
}


def check(plan: Plan) -> None:
    """Raises InputError where this machine cannot provide an environment of the plan."""
    for number, environment in enumerate(plan.environments):
        try:
            _ENVIRONMENTS[environment.type].check()
        except PydanticCustomError as error:
            raise refused(plan, ("environments", number), error) from error


def enter(
    environment: Environment, processes: Processes, name: str
) -> AbstractContextManager[Place]:
    """Prepares a place for one service; leaving the context takes it away."""
    return _ENVIRONMENTS[environment.type].enter(processes, name)
