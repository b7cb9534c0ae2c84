# SPDX-License-Identifier: Apache-2.0
"""The environments of one run: one for its services, or several that a network joins."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tare.lab import environments
from tare.lab.environments.bridge_network import BridgeNetwork
from tare.lab.environments.environment import Environment
from tare.lab.processes.processes import Processes
from tare.lab.start import replicas
from tare.plan import Plan
from tare.plan.schema.environments import EnvironmentBase


class Places:
    """Where the services of a run are, each in an environment of its own or beside another."""

    def __init__(
        self, plan: Plan, settings: EnvironmentBase, processes: Processes, name: str
    ) -> None:
        """`name` is unique among the runs of a block."""
        self._name = name
        joined = bool(plan.services) and settings.own_network
        self._bridge_network = BridgeNetwork() if joined else None
        self._services = replicas.expanded(plan)
        places: dict[str | None, Environment] = {}
        found: dict[str | None, Environment] = {}
        for service in self._services:
            unique, beside = self.unique(service.name), service.table.beside
            if beside is None:
                place = environments.of_run(settings, processes, unique, self._bridge_network)
            else:
                place = places[beside]
            places[service.name] = place
            contained = service.table.container is not None
            found[service.name] = environments.contained(place, unique) if contained else place
        self.environments = [*dict.fromkeys((*places.values(), *found.values()))]
        """Those in another place follow it."""
        self.of: Mapping[str | None, Environment] = found
        """By the name of the service; None for the service that has the load."""

    def unique(self, service: str | None) -> str:
        """A name for the program of a service. No name in a plan has a plus."""
        return self._name if service is None else f"{self._name}+{service}"

    def prepare(self, folders: Mapping[str | None, Path]) -> None:
        """Creates all places, with the volumes in the folders of services.

        Raises RunError or StartError if this fails.
        """
        if self._bridge_network is not None:
            self._bridge_network.prepare()
        for environment in self.environments:
            environment.prepare()
        names = {
            name: self.of[service.name].address
            for service in self._services
            for name in (service.name or service.table.name, *service.table.aliases)
            if name is not None
        }
        for environment in self.environments:
            environment.name_hosts(names)
        for service in self._services:
            if service.table.volume is not None:
                volume = folders[service.name] / "volume"
                self.of[service.name].add_volume(volume, service.table.volume)

    def stop(self) -> None:
        """Removes all places, also if one of them cannot be removed."""
        with ExitStack() as stack:
            if self._bridge_network is not None:
                stack.callback(self._bridge_network.stop)
            for environment in self.environments:
                stack.callback(environment.stop)
