# SPDX-License-Identifier: Apache-2.0
"""The typed layers of a plan; `tare.lab.layers` puts each in its place."""

from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tare.plan.schema.values import (
    AgentCommand,
    Command,
    FilledText,
    Name,
    Signal,
    SomeDuration,
    SystemText,
    Variables,
    expected,
)


class LayerBase(BaseModel):
    """One thing between a service and its users."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    whole_machine: ClassVar[bool] = False
    """Whether it covers the whole machine, so that no service beside it is without it."""

    SHORTHAND: ClassVar[str]
    """How `--condition NAME=...` writes it: `TYPE:VALUE`, or `TYPE[:VALUE]` with a value that may
    be omitted."""
    SHORTHAND_KEY: ClassVar[str]
    """The key that the value is for."""

    @classmethod
    def from_shorthand(cls, value: str | None) -> dict[str, Any]:
        """The keys of the layer, besides its type, for the value in its shorthand."""
        return {} if value is None else {cls.SHORTHAND_KEY: value}

    @property
    def texts(self) -> list[str]:
        """What it adds to the service's command and variables, where names in braces are filled."""
        return []


class ServiceLayer(LayerBase):
    """A layer that stands at one service."""

    at: Name | None = None
    """One of `services`; unless given, the service that has the load."""


class HookLayer(ServiceLayer):
    """Tare's library-level hook, with its rules."""

    SHORTHAND = "hook[:RULES_FILE]"
    SHORTHAND_KEY = "rules"

    type: Literal["hook"]
    rules: SystemText | None = None
    """A rules file, relative to the plan; without a file the hook only passes calls on."""


class LinkLayer(LayerBase):
    """Tare's link: connections between the load generator and the service use shared memory."""

    SHORTHAND = "link[:eager]"
    SHORTHAND_KEY = "eager"

    type: Literal["link"]
    eager: bool = False
    """Whether connections of one request are linked, too."""

    @classmethod
    def from_shorthand(cls, value: str | None) -> dict[str, Any]:
        return {} if value is None else {cls.SHORTHAND_KEY: value == "eager" or value}


class LogLayer(ServiceLayer):
    """Tare's event log: what the service logs is collected by a process beside it."""

    SHORTHAND = "log[:CODEC]"
    SHORTHAND_KEY = "codec"

    type: Literal["log"]
    codec: Literal["zstd", "lz4", "lzo1x", "none"] = "zstd"
    workers: int = Field(0, ge=0, le=64)
    """Threads that compress; with 0 the thread that collects does it."""
    clock: Literal["tsc", "tscp", "monotonic"] = "tsc"
    """What the times of events are read from."""
    agent: FilledText | None = None
    """Options of the agent that logs the methods of a Java service (`include=...`)."""

    @property
    def texts(self) -> list[str]:
        return [] if self.agent is None else [self.agent]


class SpansLayer(ServiceLayer):
    """A receiver of spans: what the service exports over OTLP is in the result."""

    SHORTHAND = "spans[:AGENT_JAR]"
    SHORTHAND_KEY = "agent"

    type: Literal["spans"]
    agent: SystemText | None = None
    """OpenTelemetry's Java agent, a file relative to the plan."""
    service: SystemText | None = None
    """The name of the service in its spans, unless its environment has OTEL_SERVICE_NAME: that in
    `at`, or `service`."""
    sample: float | None = Field(None, gt=0, le=1)
    """The share of requests that is traced; unless given, the service decides."""


class ProxyLayer(ServiceLayer):
    """A proxy in front of the service, as a side-car has it; the load goes to the proxy."""

    SHORTHAND = "proxy:envoy|haproxy|nginx"
    SHORTHAND_KEY = "program"

    type: Literal["proxy"]
    program: Literal["envoy", "haproxy", "nginx"]
    binary: SystemText | None = None
    """The program's file where it is not on PATH."""
    config: SystemText | None = None
    """The user's own configuration, relative to the plan, instead of a minimal configuration."""
    link: bool = False
    """Whether the proxy, and the load generator, run under tare link."""


class WrapLayer(ServiceLayer):
    """Any command that is put before the service's own."""

    SHORTHAND = "wrap:COMMAND"
    SHORTHAND_KEY = "command"

    type: Literal["wrap"]
    command: Command

    @property
    def texts(self) -> list[str]:
        return self.command


class EnvLayer(ServiceLayer):
    """Any variables in the service's environment."""

    SHORTHAND = "env:VARIABLE=VALUE"
    SHORTHAND_KEY = "variables"

    type: Literal["env"]
    variables: Variables = Field(min_length=1)

    @classmethod
    def from_shorthand(cls, value: str | None) -> dict[str, Any]:
        name, equals, text = (value or "").partition("=")
        return {cls.SHORTHAND_KEY: {name: text} if equals else value}

    @property
    def texts(self) -> list[str]:
        return [*self.variables.values()]


class AgentLayer(LayerBase):
    """Any program that observes the whole machine; it is switched on and off in turns."""

    SHORTHAND = "agent:COMMAND"
    SHORTHAND_KEY = "start"

    whole_machine: ClassVar[bool] = True

    type: Literal["agent"]
    name: Name = "agent"
    start: AgentCommand
    """Stays in the foreground; with `stop` it may also end once the agent runs elsewhere."""
    ready: AgentCommand | None = None
    """Is repeated until it exits with 0; without it the agent is ready when it has started."""
    stop: AgentCommand | None = None
    """Unless given, `start` gets `stop_signal`."""
    timeout: SomeDuration = 30 * 10**9
    """Until it is ready, and for `stop` until it has ended."""
    stop_signal: Signal = "TERM"
    stop_timeout: SomeDuration = 5 * 10**9
    """From the signal until it is killed."""

    @model_validator(mode="after")
    def _ready_with_stop(self) -> Self:
        if self.stop is not None and self.ready is None:
            raise expected("ready with stop: nothing else shows whether the agent runs", "stop")
        return self


class MapLayer(LayerBase):
    """Tare's tracer of sockets, on and off in turns."""

    SHORTHAND = "map[:INTERVAL]"
    SHORTHAND_KEY = "interval"

    whole_machine: ClassVar[bool] = True

    type: Literal["map"]
    interval: SomeDuration = 10**9
    """Between two readings of the edges."""
    max_edges: int = Field(32_768, ge=1, le=10_000_000)
    """Room for this number of edges; the rest is folded into one edge."""
    method: Literal["bundle", "aggregate", "stream", "poll"] = "bundle"
    """How edges are found."""


Layer = Annotated[
    HookLayer
    | LinkLayer
    | LogLayer
    | SpansLayer
    | ProxyLayer
    | WrapLayer
    | EnvLayer
    | AgentLayer
    | MapLayer,
    Field(discriminator="type"),
]

LAYERS: dict[str, type[LayerBase]] = {
    get_args(layer.model_fields["type"].annotation)[0]: layer
    for layer in get_args(get_args(Layer)[0])
}
"""The layers by their type."""
