# SPDX-License-Identifier: Apache-2.0
"""The services of a plan: the service that has the load, and those that it needs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from tare.plan.schema.placeholders import SERVICE_NAMES, misspelt_name, services_named, unknown_part
from tare.plan.schema.values import (
    AbsolutePath,
    Arguments,
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

if TYPE_CHECKING:
    from tare.plan.schema.layers import Layer


class Strict(BaseModel):
    """A table of the plan: no unknown keys, no conversions that nobody asked for."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Ready(Strict):
    """How the lab knows that a service is ready: exactly one of `http`, `tcp`, `log`, `command`."""

    http: UrlPath | None = None
    status: int = 200
    tcp: Literal[True] | None = None
    log: str | None = None
    command: Command | None = None
    """What succeeds in the environment of the service, in its container if it has one."""
    timeout: SomeDuration = 30 * 10**9

    @model_validator(mode="after")
    def _one(self) -> Self:
        checks = (self.http, self.tcp, self.log, self.command)
        if sum(check is not None for check in checks) != 1:
            raise expected("exactly one of http, tcp, log and command")
        if self.log is not None:
            try:
                re.compile(self.log)
            except re.error as error:
                raise expected(f"a regular expression ({error})", "log") from error
        return self

    @property
    def of_proxies(self) -> Self:
        """The same check through a proxy, whose log and container say nothing of the service."""
        if self.log is None and self.command is None:
            return self
        return self.model_copy(update={"log": None, "command": None, "tcp": True})


READY_AT_ONCE = Ready(log="")
"""Of a service that is not known to listen anywhere."""


class OwnContainer(Strict):
    """A container for one service, whatever the environment."""

    image: Annotated[str, Field(min_length=1)] | None = None
    """An image in podman's storage; None for the files of the environment."""
    entrypoint: Arguments | None = None
    """In place of the image's."""
    arguments: Arguments | None = None
    """What follows the entrypoint, in place of the image's."""
    mounts: dict[AbsolutePath, FilledText] = {}
    """Files and folders of this machine that it sees, read-only, by their path in the container;
    relative to the plan's folder."""
    cpus: Annotated[float, Field(gt=0)] | None = None
    """CPU time per second that it may use; None for what the environment says."""
    memory: Size | None = None
    """Bytes that it may use; None for what the environment says."""

    @model_validator(mode="after")
    def _has_an_image(self) -> Self:
        for key in ("entrypoint", "arguments"):
            if getattr(self, key) is not None and self.image is None:
                raise expected(f"an image, because {key} replaces its own", "image")
        return self


def _own_container(value: Any) -> Any:
    """A table of true, which is an empty one."""
    return {} if value is True else None if value is False else value


class Service(Strict):
    """The program under test."""

    name: Name | None = None
    """What containers of the run call it."""
    aliases: list[Name] = []
    """Other names that containers of the run have for it."""
    command: Command = []
    """Needed unless an image has it."""
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
    after: list[Name] = []
    """Names of `services` above it: it starts when they are ready."""
    container: Annotated[
        OwnContainer | None,
        BeforeValidator(_own_container, json_schema_input_type=OwnContainer | bool),
    ] = None
    volume: Size | None = None
    """Bytes of `{dir}/volume`: in a guest, a file system of its own."""

    @property
    def image(self) -> str | None:
        """The image of its own container."""
        return None if self.container is None else self.container.image

    @model_validator(mode="after")
    def _has_a_command(self) -> Self:
        if not self.command and self.image is None:
            raise PydanticCustomError("missing", "Field required", {"keys": ("command",)})
        return self

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

    def listens_where_its_image_says(self, layers: "Iterable[Layer]") -> bool:
        """Whether neither the plan nor its layers say at which port."""
        texts = [*self.texts, *(text for layer in layers for text in layer.texts)]
        return self.port is None and not any("{port}" in text for text in texts)

    @property
    def needs(self) -> set[str]:
        """What it names in braces as services, what it starts after, and what it is beside."""
        named = {name for text in self.texts for name in services_named(text)}
        return {*named, *self.after, *([] if self.beside is None else [self.beside])}


class NeededService(Service):
    """A service that the one under test needs: a database, or another service."""

    name: Name
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
        if table.name in above:
            raise expected(f'different names of services (found "{table.name}" twice)', *place)
        _check_needs(table, place, above)
        if isinstance(table, NeededService):
            above.append(table.name)


def _check_needs(table: Service, place: tuple[str | int, ...], above: Sequence[str]) -> None:
    """Raises Pydantic's error for a service that needs one that is not above it."""
    known = ", ".join(above) or "there is none"
    if table.beside is not None and table.beside not in above:
        raise expected(f"a service above it ({known})", *place, "beside")
    if any(name not in above for name in table.after):
        raise expected(f"services above it ({known})", *place, "after")
    for text in (*table.command, *table.environment.values()):
        if other := next((name for name in services_named(text) if name not in above), None):
            raise expected(
                f"the address or port of a service above it ({known}), not of {other}",
                *place,
                "command",
            )
