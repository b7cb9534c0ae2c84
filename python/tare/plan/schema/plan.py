# SPDX-License-Identifier: Apache-2.0
"""The plan's schema: what a user declares before anything is measured."""

from collections.abc import Collection
from itertools import product
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from tare.plan.option_names import OPTIONS
from tare.plan.schema import alternation, services
from tare.plan.schema.calibration import Calibration
from tare.plan.schema.collect import Collect, check_collect
from tare.plan.schema.environments import Environment, HostEnvironment
from tare.plan.schema.layers import Layer, ProxyLayer, ServiceLayer
from tare.plan.schema.loads import CommandLoad, Load, TareLoad, TcpLoad
from tare.plan.schema.placement import Placement
from tare.plan.schema.recommendations import Recommendations
from tare.plan.schema.services import NeededService, PlacedService, Service, Strict
from tare.plan.schema.values import (
    Duration,
    Name,
    Positive,
    SomeDuration,
    SomeFraction,
    expected,
)

Compare = Literal["conditions", "environments"]
Design = Literal["interleaved", "blocks", "alternating"]


AGAIN = "~again"
"""Ends the name of a control."""


class Condition(Strict):
    """A service and its layers; the first layer is the nearest to the service."""

    name: Name
    layers: list[Layer] = Field([])

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        places = [(layer.type, getattr(layer, "at", None)) for layer in self.layers]
        for name in ("hook", "spans"):
            if any(kind == name and places.count((kind, at)) > 1 for kind, at in places):
                raise expected(f"one {name} layer at most for each service", "layers")
        return self

    def layers_at(self, role: str | None) -> list[Layer]:
        """The layers of one of the plan's `services`, or of the service under test."""
        return [layer for layer in self.layers if getattr(layer, "at", None) == role]


class Plan(Strict):
    """One experiment, declared."""

    name: Name
    kind: Literal["micro", "macro", "both"] = "macro"
    primary: Literal["p50", "p95", "p99", "mean"] = "p50"
    budget: SomeFraction
    alpha: SomeFraction = 0.05
    compare: Compare = "conditions"
    """What is compared with a baseline: conditions in each environment, or environments with each
    condition."""
    baseline: Name | None = None
    """Name of what the others are compared with; the first unless said."""
    blocks: Positive = 8
    smoke: bool = False
    """Whether the plan is only tried out: its verdicts are no evidence and fail no gate."""
    seed: int | None = Field(None, ge=0, lt=2**63)
    design: Design | None = None
    turn: SomeDuration = 2 * 10**9
    """Measured part of one turn of a condition."""
    turns: int = Field(8, ge=8, le=10_000)
    """Of every condition in a block."""
    settle: Duration = 500 * 10**6
    """From the moment that a turn's layers are ready until it is measured."""
    control: bool = True
    """Whether every block holds the baseline once more; see docs/internals/run.md."""
    placement: Placement = None
    """A rule, or the CPU numbers of `service` and `generator`."""
    environments: list[Environment] = Field([HostEnvironment(type="host")], min_length=1)
    service: Service
    services: list[NeededService] = Field([], max_length=100)
    """What the service needs; they start before it, in this order."""
    load: Load = TareLoad()
    conditions: list[Condition] = Field(min_length=1, max_length=1_000)
    calibration: Calibration | None = None
    collect: Collect | None = None
    """The pipeline that the spans of traced services travel through; else Tare receives them."""
    published: Literal["kahlhofer-2023", "vinken-2022"] | None = None
    """The published numbers that the report shows beside its own."""
    recommendations: Recommendations = Recommendations()

    _file: str = PrivateAttr(default="")
    _written: str = PrivateAttr(default="")
    _folder: Path = PrivateAttr(default=Path())
    _text: str = PrivateAttr(default="")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for kind, names in self._names.items():
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise expected(f'different names of {kind} (found "{twice}" twice)', kind)
        compared = self._names[self.compare]
        if len(compared) < 2:
            raise expected(f"at least 2 {self.compare} to compare", self.compare)
        if self.baseline is not None and self.baseline not in compared:
            raise expected(
                f"a baseline that is one of the {self.compare}: {', '.join(compared)}", "baseline"
            )
        services.check(self.services, self.service)
        self._check_ports()
        self._check_places_of_layers()
        if self.design == "interleaved" and not self.can_interleave:
            raise expected('design = "blocks": ' + self.why_not_interleaved, "design")
        alternation.check(self)
        check_collect(self)
        layers = [layer for condition in self.conditions for layer in condition.layers]
        if self.kind != "macro" and "hook" not in [layer.type for layer in layers]:
            raise expected(f'a layer that times itself (hook) with kind = "{self.kind}"', "kind")
        if isinstance(self.load, TcpLoad) and any(
            isinstance(layer, ProxyLayer) and layer.config is None for layer in layers
        ):
            raise expected(
                'a config for every proxy with type = "tcp" of the load: the minimal one is for'
                " HTTP",
                "conditions",
            )
        return self

    def _check_ports(self) -> None:
        for condition, service in product(self.conditions, self.all_services):
            layers = condition.layers_at(service.role)
            if service.table.image is None and service.table.listens_where_its_image_says(layers):
                raise expected(
                    f'{{port}} for "{condition.name}", as in "my-server --port {{port}}" or "env'
                    ' PORT={port} my-server"; or set a fixed port (--port N; in a plan, port = N)',
                    *service.place,
                    "command",
                )

    def _check_places_of_layers(self) -> None:
        names = [service.name for service in self.services]
        for number, condition in enumerate(self.conditions):
            for position, layer in enumerate(condition.layers):
                if not isinstance(layer, ServiceLayer) or layer.at is None:
                    continue
                if layer.at not in names:
                    place = ("conditions", number, "layers", position, "at")
                    raise expected(f"one of services: {', '.join(names) or 'none'}", *place)
        for number, environment in enumerate(self.environments):
            if self.services and environment.has_generator:
                wanted = f"no environment of type {environment.type} with services"
                raise expected(wanted, "environments", number)

    @property
    def all_services(self) -> list[PlacedService]:
        """In the order of their start, replicas of a service as one; the last has the load."""
        needed = [
            PlacedService(service, service.name, ("services", number), service.name)
            for number, service in enumerate(self.services)
        ]
        return [*needed, PlacedService(self.service, None, ("service",), None)]

    @property
    def folder(self) -> Path:
        """The folder of the plan's file: relative paths in it start there."""
        return self._folder

    @property
    def source(self) -> tuple[str, str]:
        """The name of the plan's file, and the text that the user wrote there."""
        return self._file, self._written

    @property
    def has_file(self) -> bool:
        """Whether the plan is a user's file; otherwise it was made of options."""
        return self._file != OPTIONS

    @property
    def text(self) -> str:
        """The plan's text as it is carried out."""
        return self._text

    @property
    def baseline_name(self) -> str:
        """The condition or environment that the others are compared with."""
        return self.baseline or self._names[self.compare][0]

    @property
    def baseline_condition(self) -> Condition:
        """The condition of the runs that others are compared with; of several, the first."""
        names = [self.baseline_name] if self.compare == "conditions" else self.groups
        return self._condition(names[0])

    @property
    def control_name(self) -> str | None:
        """What the runs of the control are stored as; None where the plan does without it."""
        # No name has a tilde.
        return f"{self.baseline_name}{AGAIN}" if self.control else None

    @property
    def environment_names(self) -> list[str]:
        """What results call the environments."""
        return [environment.name for environment in self.environments]

    def environment(self, name: str) -> Environment:
        """The environment of this name, with absolute paths."""
        return next(
            environment for environment in self.environments if environment.name == name
        ).in_folder(self.folder)

    @property
    def compared(self) -> list[str]:
        """What every block runs in each group, by name: all conditions or environments, and the
        control, a second baseline."""
        names = self._names[self.compare]
        return [*names, self.control_name] if self.control_name else names

    @property
    def groups(self) -> list[str]:
        """Within what they are compared: the names of environments, or of conditions."""
        return self._names["environments" if self.compare == "conditions" else "conditions"]

    def only(self, environments: Collection[str]) -> Self:
        """The plan with the environments of these names alone."""
        left = [
            environment for environment in self.environments if environment.name in environments
        ]
        return self.model_copy(update={"environments": left})

    def where(self, group: str) -> str:
        """` in host` or ` with hook`, for a person; empty if there is one group."""
        if len(self.groups) == 1:
            return ""
        return f" {'in' if self.compare == 'conditions' else 'with'} {group}"

    def place(self, group: str, compared: str) -> tuple[Environment, Condition]:
        """Where and how one of `compared` runs in one of `groups`; the control has its own name."""
        known = compared.removesuffix(AGAIN)
        by_condition = self.compare == "conditions"
        environment = self.environment(group if by_condition else known)
        condition = self._condition(known if by_condition else group)
        if known == compared:
            return environment, condition
        named = {"name": compared}
        if by_condition:
            return environment, condition.model_copy(update=named)
        return environment.model_copy(update=named), condition

    @property
    def _names(self) -> dict[Compare, list[str]]:
        conditions = [condition.name for condition in self.conditions]
        return {"conditions": conditions, "environments": self.environment_names}

    def _condition(self, name: str) -> Condition:
        return next(condition for condition in self.conditions if condition.name == name)

    @property
    def why_not_interleaved(self) -> str:
        """Why the conditions cannot stand side by side; empty where they can."""
        if isinstance(self.load, CommandLoad):
            return "another load generator cannot switch between conditions"
        fixed = any(
            service.table.port is not None
            or service.table.listens_where_its_image_says(condition.layers_at(service.role))
            for condition, service in product(self.conditions, self.all_services)
        )
        if fixed and not all(environment.own_network for environment in self.environments):
            return "the service has a fixed port, so only one can run at a time"
        if any(environment.has_generator for environment in self.environments):
            return "each pod has a load generator of its own"
        return ""

    @property
    def can_interleave(self) -> bool:
        """Whether the services of a block can be up together."""
        return not self.why_not_interleaved

    @property
    def design_used(self) -> Design:
        """The design asked for, or else the design that fits: see docs/run.md."""
        if self.design is not None:
            return self.design
        if any(alternation.whole_machine(condition) for condition in self.conditions):
            return "alternating"
        return "interleaved" if self.can_interleave else "blocks"

    @property
    def has_whole_blocks(self) -> bool:
        """Whether the conditions of a block are measured together, so that none can be repeated
        alone."""
        return self.design_used != "blocks"
