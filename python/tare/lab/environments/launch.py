# SPDX-License-Identifier: Apache-2.0
"""What is to be started for one condition of one block."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import TareError
from tare.plan.schema.placeholders import fill

if TYPE_CHECKING:
    from tare.lab.environments.environment import Environment


JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"
"""Every JVM reads its options."""


class RunError(TareError):
    """One run cannot count; the message is the reason, and the experiment goes on."""


@dataclass(frozen=True)
class Proxy:
    """A proxy that stands in front of the service on a port of its own."""

    name: str
    command: list[str]
    port: int


@dataclass
class Launch:
    """A service and what its layers make of it, the nearest to the service first.

    Layers change it: they put words before the command, add variables, or move the door.
    """

    environment: "Environment"
    folder: Path
    """The run's own folder, `{dir}` in the plan."""
    plan_folder: Path
    command: list[str]
    variables: dict[str, str]
    port: int
    """Where the service itself listens."""
    door: int
    """Where its users come in: the service's port, or that of the outermost proxy."""
    proxies: list[Proxy] = field(default_factory=list)
    costs: dict[str, Path] = field(default_factory=dict)
    """The streams of `costs` that its layers write, by layer and proxy (`link proxy1-nginx`)."""
    spans: Path | None = None
    """The stream of spans that a layer writes."""
    traces_to: str | None = None
    """Where services send spans besides: the collector of the plan's pipeline."""
    needed: Mapping[str, "Launch"] = field(default_factory=dict)
    """What the service needs, by name."""
    around_load: list[str] = field(default_factory=list)
    """Words that a layer puts before the load generator's command: it is at the other end."""

    def add_java_agent(self, agent: str) -> None:
        """Loads an agent (`FILE` or `FILE=OPTIONS`) into every JVM of the service."""
        known = self.variables.get(JAVA_OPTIONS)
        option = f"-javaagent:{agent}"
        self.variables[JAVA_OPTIONS] = f"{known} {option}" if known else option

    def filled(self, text: str) -> str:
        """`text` with the plan's placeholders replaced."""
        return fill(text, self.placeholders)

    @property
    def placeholders(self) -> dict[str, object]:
        """The names that a plan may use in braces."""
        return {
            "address": self.environment.address,
            "port": self.port,
            "dir": self.folder,
            "plan": self.plan_folder,
            **{
                f"{name}.address": launch.environment.address
                for name, launch in self.needed.items()
            },
            **{f"{name}.port": launch.door for name, launch in self.needed.items()},
        }
