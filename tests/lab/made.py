# SPDX-License-Identifier: Apache-2.0
"""Environments that a test makes by itself, without an experiment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tare.lab import environments
from tare.lab.environments.environment import Environment
from tare.lab.processes.processes import Processes
from tare.plan.schema.environments import ENVIRONMENTS

Made = TypeVar("Made", bound=Environment)


@contextmanager
def making(kind: type[Made], name: str, processes: Processes) -> Iterator[Callable[..., Made]]:
    """A function that prepares an environment of the type `name` with some settings. At the end,
    every environment that it made is stopped."""
    made: list[Made] = []

    def make(**settings: object) -> Made:
        table = ENVIRONMENTS[name].model_validate({"type": name, **settings})
        environment = environments.of_run(table, processes, f"1/{name}/{len(made)}")
        assert isinstance(environment, kind)
        made.append(environment)
        environment.check(table)
        environment.prepare()
        return environment

    try:
        yield make
    finally:
        for environment in made:
            environment.stop()
