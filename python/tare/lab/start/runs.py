# SPDX-License-Identifier: Apache-2.0
"""A run: one condition in one block, from its start to what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tare.lab.environments.environment import Environment
from tare.lab.environments.launch import Launch
from tare.lab.machine.saturation import Saturation
from tare.lab.processes.processes import Family, Process
from tare.lab.result.measured import Measured
from tare.lab.start.places import Places
from tare.plan import Condition
from tare.plan.schema.environments import EnvironmentBase

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.lab.recommendations.observations import RunObservations


@dataclass(frozen=True)
class Running:
    """A program that was started, and where."""

    process: Process
    environment: Environment

    def family(self) -> Family:
        """Its processes, with their CPU time up to now."""
        return self.environment.family(self.process)


@dataclass(frozen=True)
class Target:
    """A service that is ready."""

    name: str
    """Of its run."""
    launch: Launch
    process: Process
    programs: Sequence[Running]
    """The service, its proxies, and what it needs."""

    def families(self) -> list[Family]:
        """The processes of each program, with their CPU time up to now."""
        return [program.family() for program in self.programs]


@dataclass
class Run:
    """One condition in one block: what was started, what was measured, why it cannot count."""

    number: int
    name: str
    """Of its condition, or where environments are compared, of its environment."""
    condition: Condition
    settings: EnvironmentBase
    places: Places
    launches: dict[str | None, Launch] = field(default_factory=dict)
    """What was started, by the name of the service; None for the service that has the load."""
    programs: list[Running] = field(default_factory=list)
    """All services and proxies, in the order of their start."""
    target: Target | None = None
    """Where the load goes; None if the service did not become ready."""
    logs: list[Path] = field(default_factory=list)
    failed_log: Path | None = None
    """The log of the program that did not become ready."""
    reason: str | None = None
    """Why the run cannot count."""
    saturation: Saturation | None = None
    """What the kernel held the service back by while it had load."""
    measured: Measured | None = None
    metrics: "pa.Table | None" = None
    """What machine and service did while it had load; rows of the table `machine`."""
    traces_to: str | None = None
    """Where its services send spans besides: the collector of the plan's pipeline."""
    observations: "RunObservations | None" = None
    """What was read around its load, for the recommendations."""

    @property
    def pids(self) -> list[int]:
        """The processes of its service and of the proxies."""
        programs = self.programs
        return [pid for each in programs for pid in each.environment.pids(each.process)]

    @property
    def interfaces(self) -> list[str]:
        """Interfaces of this host with the traffic of its guests."""
        return [name for place in self.places.environments for name in place.interfaces]

    @property
    def environment(self) -> Environment:
        """Where the service is that has the load."""
        return self.places.of[None]

    @property
    def launch(self) -> Launch | None:
        """What was started as the service that has the load."""
        return self.launches.get(None)

    @property
    def processes(self) -> list[Process]:
        """Of all programs."""
        return [program.process for program in self.programs]

    def fail(self, why: str) -> None:
        """Marks it as a run that cannot count; the first reason stays."""
        self.reason = self.reason or why
