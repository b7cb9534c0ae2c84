# SPDX-License-Identifier: Apache-2.0
"""The typed layers of a plan; `tare.lab.layers` puts each in its place."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tare.plan.values import Command, SystemText, Variables


class LayerBase(BaseModel):
    """One thing between a service and its users."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def texts(self) -> list[str]:
        """What it adds to the service's command and variables, where names in braces are filled."""
        return []


class HookLayer(LayerBase):
    """Tare's library-level hook, with its rules."""

    type: Literal["hook"]
    rules: SystemText | None = None
    """A rules file, relative to the plan; without one the hook only passes calls on."""


class LogLayer(LayerBase):
    """Tare's event log: what the service logs is collected by a process beside it."""

    type: Literal["log"]
    codec: Literal["zstd", "lz4", "lzo1x", "none"] = "zstd"
    workers: int = Field(0, ge=0, le=64)
    """Threads that compress; with 0 the one that collects does it."""
    clock: Literal["tsc", "tscp", "monotonic"] = "tsc"
    """What the times of events are read from."""
    agent: SystemText | None = None
    """Options of the agent that logs the methods of a Java service (`include=...`)."""

    @property
    def texts(self) -> list[str]:
        return [] if self.agent is None else [self.agent]


class ProxyLayer(LayerBase):
    """A proxy in front of the service, as a side-car has it; the load goes to the proxy."""

    type: Literal["proxy"]
    program: Literal["envoy", "haproxy", "nginx"]
    binary: SystemText | None = None
    """The program's file where it is not on PATH."""
    config: SystemText | None = None
    """The user's own configuration, relative to the plan, instead of a minimal one."""


class WrapLayer(LayerBase):
    """Any command that is put before the service's own."""

    type: Literal["wrap"]
    command: Command

    @property
    def texts(self) -> list[str]:
        return self.command


class EnvLayer(LayerBase):
    """Any variables in the service's environment."""

    type: Literal["env"]
    variables: Variables = Field(min_length=1)

    @property
    def texts(self) -> list[str]:
        return [*self.variables.values()]


Layer = Annotated[
    HookLayer | LogLayer | ProxyLayer | WrapLayer | EnvLayer,
    Field(discriminator="type"),
]
