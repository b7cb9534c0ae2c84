# SPDX-License-Identifier: Apache-2.0
"""The services of a plan: the service that has the load, and those that it needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tare.plan.schema.placeholders import SERVICE_NAMES, misspelt_name, services_named, unknown_part
from tare.plan.schema.values import (
    Command,
    FilledText,
    Name,
    RelativePath,
    Signal,
    Size,
    SomeDuration,
    UrlPath,
    Variables,
    expected,
)


class Strict(BaseModel):
    """A table of the plan: no unknown keys, no conversions that nobody asked for."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Ready(Strict):
    """How the lab knows that a service is ready: exactly one of `http`, `tcp`, `log`."""

    http: UrlPath | None = None
    status: int = 200
    tcp: Literal[True] | None = None
    log: str | None = None
    timeout: SomeDuration = 30 * 10**9

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(check is not None for check in (self.http, self.tcp, self.log)) != 1:
            raise expected("exactly one of http, tcp and log")
        if self.log is not None:
            try:
                re.compile(self.log)
            except re.error as error:
                raise expected(f"a regular expression ({error})", "log") from error
        return self

    @property
    def of_proxies(self) -> Self:
        """The same check through a proxy, whose log says nothing of the service."""
        return self if self.log is None else self.model_copy(update={"log": None, "tcp": True})


class Service(Strict):
    """The program under test."""

    command: Command
    directory: FilledText = "{dir}"
    environment: Variables = {}
    files: dict[RelativePath, str] = {}
    """Files written into the run's own folder before the service starts."""
    port: int | None = Field(None, ge=1, le=65535)
    """A fixed port, for a service that cannot be told a port."""
    ready: Ready = Ready(tcp=True)
    stop_signal: Signal = "TERM"
    stop_timeout: SomeDuration = 5 * 10**9
    beside: Name | None = None
    """One of `services` above it, with which it shares a network, a pod or a guest."""
    volume: Size | None = None
    """Bytes of `{dir}/volume`: in a guest, a file system of its own."""

    @model_validator(mode="after")
    def _files_fit_together(self) -> Self:
        for name in self.files:
            if folder := next((str(p) for p in Path(name).parents if str(p) in self.files), None):
                raise expected(f'a folder, not a file, at "{folder}"', "files", name)
            if found := misspelt_name(self.files[name], SERVICE_NAMES):
                wrong, right = found
                raise expected(f"{{{right}}} instead of {{{wrong}}}", "files", name)
        return self

    @property
    def texts(self) -> list[str]:
        """Where names in braces are filled."""
        return [*self.command, *self.environment.values(), *self.files.values()]

    @property
    def needs(self) -> set[str]:
        """What it names in braces as services, and the service that it is beside."""
        named = {name for text in self.texts for name in services_named(text)}
        return named if self.beside is None else {*named, self.beside}


class NeededService(Service):
    """A service that the one under test needs: a database, or another service."""

    name: Name
    container: bool = False
    """Whether it runs in a container of its own, whatever the environment."""
    path: UrlPath | None = None
    """What the load requests of it if it is measured alone."""
    replicas: int = Field(1, ge=1, le=100)
    """How many of it run behind a balancer of HTTP."""

    @property
    def names_of_replicas(self) -> list[str]:
        """Empty for a service without a balancer."""
        if self.replicas == 1:
            return []
        return [f"{self.name}-{number}" for number in range(1, self.replicas + 1)]


@dataclass(frozen=True)
class PlacedService:
    """A service, and where it stands in the plan."""

    table: Service
    name: str | None
    """None for the service that has the load."""
    place: tuple[str | int, ...]
    role: str | None
    """What layers call it in their key `at`; all replicas of a service have one role."""


def check(needed: Sequence[NeededService], service: Service) -> None:
    """Raises Pydantic's error for a service that needs a service that is not above it in the
    plan, or whose replicas have the name of another service."""
    names = [needed_service.name for needed_service in needed]
    for number, needed_service in enumerate(needed):
        if twin := next((name for name in needed_service.names_of_replicas if name in names), None):
            wanted = f"another name than {twin}, which is a replica of {needed_service.name}"
            raise expected(wanted, "services", names.index(twin), "name")
        if needed_service.replicas > 1 and needed_service.port is not None:
            raise expected("no fixed port with replicas", "services", number, "port")
    for number, table in enumerate((*needed, service)):
        place: tuple[str | int, ...] = (
            ("services", number) if table is not service else ("service",)
        )
        for text in table.texts:
            if found := unknown_part(text, names):
                name, part = found
                raise expected(
                    f"{{{name}.address}} or {{{name}.port}} instead of {{{name}.{part}}}",
                    *place,
                    "command",
                )
    above: list[str] = []
    for number, table in enumerate((*needed, service)):
        place = ("services", number) if table is not service else ("service",)
        known = ", ".join(above) or "there is none"
        if isinstance(table, NeededService) and table.name in above:
            raise expected(f'different names of services (found "{table.name}" twice)', *place)
        if table.beside is not None and table.beside not in above:
            raise expected(f"a service above it ({known})", *place, "beside")
        for text in (*table.command, *table.environment.values()):
            if other := next((name for name in services_named(text) if name not in above), None):
                raise expected(
                    f"the address or port of a service above it ({known}), not of {other}",
                    *place,
                    "command",
                )
        if isinstance(table, NeededService):
            above.append(table.name)
