# SPDX-License-Identifier: Apache-2.0
"""What is read of a Compose file, and what of it makes no difference to a measurement."""

import re
import shlex
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_IGNORED = {
    *("annotations", "attach", "build", "develop", "init", "labels", "logging"),
    *("mem_reservation", "platform", "pull_policy", "restart", "stdin_open", "tmpfs"),
    *("tty", "ulimits"),
}
"""Keys of services that Tare ignores. It refuses other keys that it does not know."""
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _words(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return [] if value is None else value if isinstance(value, list) else [value]


def _names(value: Any) -> Any:
    """The keys of a table, or a list."""
    return [*value] if isinstance(value, dict) else _listed(value)


def _variables(value: Any) -> Any:
    """A table of a list `NAME=value`; a name alone has no value."""
    if isinstance(value, list):
        pairs = (str(each).partition("=") for each in value)
        return {name: text if equal else None for name, equal, text in pairs}
    if isinstance(value, dict):
        return {key: None if text is None else _text(text) for key, text in value.items()}
    return value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ports(value: Any) -> Any:
    return [_port(each) for each in _listed(value)]


def _port(value: Any) -> Any:
    """The port in the container, which the load and other services use."""
    if isinstance(value, dict):
        value = value.get("target")
    text = str(value).partition("/")[0].rpartition(":")[2]
    if not text.isdecimal():
        raise ValueError(f"one port of a container, not {value}")
    return int(text)


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = re.findall(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)", value)
    if "".join(map("".join, parts)) != value:
        raise ValueError(f"a duration such as 1m30s, not {value}")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _bytes(value: Any) -> Any:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([bkmg]?)b?", str(value).lower())
    if value is None or match is None:
        return value
    return round(float(match[1]) * _BYTES[match[2] or "b"])


Arguments = Annotated[list[str] | None, BeforeValidator(_words)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
Bytes = Annotated[int | None, BeforeValidator(_bytes)]
Names = Annotated[list[str], BeforeValidator(_names)]
Ports = Annotated[list[int], BeforeValidator(_ports)]


class _Table(BaseModel):
    """A table without unknown keys, but for extensions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_extensions(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if not str(key).startswith("x-")}


class _Open(BaseModel):
    """A table of which only some keys matter."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Healthcheck(_Table):
    """When a container is healthy."""

    test: str | list[str] = []
    interval: Seconds = 30.0
    timeout: Seconds = 30.0
    retries: int = 3
    start_period: Seconds = 0.0
    start_interval: Seconds = 5.0
    disable: bool = False

    @property
    def words(self) -> list[str]:
        """The command; none if there is no check."""
        test = ["CMD-SHELL", self.test] if isinstance(self.test, str) else self.test
        match test:
            case ["CMD", *words] if not self.disable:
                return words
            case ["CMD-SHELL", text] if not self.disable:
                return ["sh", "-c", text]
        return []


class Volume(_Open):
    """A folder or file in a container."""

    type: str = "volume"
    source: str | None = None
    target: str

    @property
    def is_bind(self) -> bool:
        """Whether it is a folder or file of this machine."""
        return self.type == "bind"

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        source, _, target = data.partition(":")
        if not target:
            return {"target": source}
        kind = "bind" if source.startswith(("/", ".", "~")) else "volume"
        return {"type": kind, "source": source, "target": target.partition(":")[0]}


class _Limits(_Open):
    cpus: float | None = None
    memory: Bytes = None


class _Resources(_Open):
    limits: _Limits = _Limits()


class _Deploy(_Open):
    replicas: int = Field(1, ge=1, le=100)
    resources: _Resources = _Resources()


class _Network(_Open):
    aliases: list[str] = []


class ComposeService(_Table):
    """One service."""

    image: str | None = None
    entrypoint: Arguments = None
    command: Arguments = None
    environment: Annotated[dict[str, str | None], BeforeValidator(_variables)] = {}
    env_file: Annotated[list[str], BeforeValidator(_listed)] = []
    ports: Ports = []
    expose: Ports = []
    depends_on: Names = []
    links: Names = []
    healthcheck: Healthcheck | None = None
    volumes: list[Volume] = []
    working_dir: str | None = None
    cpus: float | None = None
    mem_limit: Bytes = None
    deploy: _Deploy = _Deploy()
    stop_signal: str | None = None
    stop_grace_period: Seconds | None = None
    profiles: list[str] = []
    container_name: str | None = None
    hostname: str | None = None
    networks: dict[str, _Network | None] = {}

    @model_validator(mode="before")
    @classmethod
    def _without_what_makes_no_difference(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kept = {key: value for key, value in data.items() if key not in _IGNORED}
        if isinstance(networks := kept.get("networks"), list):
            kept["networks"] = dict.fromkeys(networks)
        return kept

    @property
    def after(self) -> list[str]:
        """The services that start before it."""
        return [
            *dict.fromkeys([*self.depends_on, *(link.partition(":")[0] for link in self.links)])
        ]

    @property
    def aliases(self) -> list[str]:
        """Other names by which services reach it."""
        return [*dict.fromkeys(self._aliases())]

    def _aliases(self) -> Iterator[str]:
        yield from filter(None, (self.container_name, self.hostname))
        for network in self.networks.values():
            if network is not None:
                yield from network.aliases

    @property
    def replicas(self) -> int:
        return self.deploy.replicas

    @property
    def limit_of_cpus(self) -> float | None:
        """CPU time per second."""
        return self.cpus or self.deploy.resources.limits.cpus

    @property
    def limit_of_memory(self) -> int | None:
        """Bytes."""
        return self.mem_limit or self.deploy.resources.limits.memory


class ComposeFile(_Open):
    """All services."""

    services: dict[str, ComposeService] = Field(min_length=1, max_length=100)
