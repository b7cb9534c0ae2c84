# SPDX-License-Identifier: Apache-2.0
"""The typed environments of a plan; `tare.lab.environments` runs services in them."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tare.plan.schema.values import (
    UNITS_NS,
    BitRate,
    Duration,
    Fraction,
    Name,
    Size,
    expected,
)


class EnvironmentBase(BaseModel):
    """Where a service runs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    type: str
    name: Name
    """What results call it; its type unless given."""

    @property
    def own_network(self) -> bool:
        """Whether every service has a network of its own, so that several can use the same port."""
        return False

    @property
    def has_generator(self) -> bool:
        """Whether the load generator runs in the environment, and not on this machine."""
        return False

    @property
    def has_own_files(self) -> bool:
        """Whether the service has other files than this machine's."""
        return False

    @property
    def is_remote(self) -> bool:
        """Whether programs run on other machines, whose kernels this machine cannot read."""
        return False

    def in_folder(self, _folder: Path) -> Self:
        """The same with absolute paths; those in a plan start at its folder."""
        return self


LONGEST_DELAY_NS = 400 * UNITS_NS["ms"]
"""Whether a service is ready is asked with a patience of 1 s per attempt."""
HIGHEST_LOSS = 0.5
_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""A name by RFC 1123, as Kubernetes wants it."""


class HostEnvironment(EnvironmentBase):
    """This machine; services listen on 127.0.0.1."""

    type: Literal["host"]
    name: Name = "host"


class NetnsEnvironment(EnvironmentBase):
    """A network namespace for each service, joined to this machine by a link.

    The link is a veth pair, or a relay if it has a rate, loss or delay.
    """

    type: Literal["netns"]
    name: Name = "netns"
    rate: BitRate | None = None
    """Bits per second in each direction, Ethernet headers included; None for no limit."""
    loss: Fraction = 0.0
    """The share of IP packets that are lost in each direction, by chance."""
    delay: Duration = 0
    """One-way delay in nanoseconds, in each direction: the round trip grows by twice as much."""

    @property
    def own_network(self) -> bool:
        return True

    @property
    def has_relay(self) -> bool:
        """Whether the link has a rate, loss or delay."""
        return self.rate is not None or self.loss > 0 or self.delay > 0

    @model_validator(mode="after")
    def _lets_services_answer(self) -> Self:
        if self.delay > LONGEST_DELAY_NS:
            raise expected('at most "400ms"', "delay")
        if self.loss > HIGHEST_LOSS:
            raise expected('at most "50%"', "loss")
        return self


class ContainerEnvironment(EnvironmentBase):
    """A container for each service and each proxy, with the files of this machine."""

    type: Literal["container"]
    name: Name = "container"
    root: Annotated[str, Field(min_length=1)] | None = None
    """A folder with all files of the service; None for those of this machine."""
    image: Annotated[str, Field(min_length=1)] | None = None
    """An image in podman's storage for the service; None for other files."""
    network: Literal["host", "bridge"] = "host"
    """This machine's, or a network of its own for a service and its proxies, behind a bridge."""
    files: Literal["volume", "layered"] = "volume"
    """What programs write to in the run's folder: the folder itself, or a layer of OverlayFS."""
    cpus: Annotated[float, Field(gt=0)] | None = None
    """CPU time per second that each container may use."""
    memory: Size | None = None
    """Bytes that each container may use."""

    @property
    def own_network(self) -> bool:
        return self.network == "bridge"

    @property
    def has_own_files(self) -> bool:
        return self.root is not None or self.image is not None

    @model_validator(mode="after")
    def _has_one_root(self) -> Self:
        if self.root is not None and self.image is not None:
            raise expected("root or image, not both", "image")
        return self

    def in_folder(self, folder: Path) -> Self:
        if self.root is None:
            return self
        return self.model_copy(update={"root": str((folder / self.root).absolute())})


class _PodsEnvironment(EnvironmentBase):
    """Containers of Kubernetes for load generator, service and each proxy."""

    cpus: Annotated[float, Field(ge=0.01)] | None = None
    """CPU time per second that the service and each proxy may use."""
    memory: Size | None = None
    """Bytes that the service and each proxy may use."""
    load_cpus: Annotated[float, Field(ge=0.01)] | None = None
    """CPU time per second that the load generator may use."""

    @property
    def own_network(self) -> bool:
        return True

    @property
    def has_generator(self) -> bool:
        return True


class PodEnvironment(_PodsEnvironment):
    """A Kubernetes Pod by podman: containers for load generator, service and each proxy."""

    type: Literal["pod"]
    name: Name = "pod"
    image: Annotated[str, Field(min_length=1)] | None = None
    """An image in podman's storage for the service; None for the files of this machine."""

    @property
    def has_own_files(self) -> bool:
        return self.image is not None


_NodeName = Annotated[str, Field(min_length=1, max_length=253)]


class PodsAcrossNodesEnvironment(_PodsEnvironment):
    """Two Kubernetes Pods on different nodes of a cluster: one has the service with its proxies,
    the other the load generator."""

    type: Literal["pods-across-nodes"]
    name: Name = "pods-across-nodes"
    image: Annotated[str, Field(min_length=1)]
    """An image that the nodes can pull, for the service and its proxies."""
    load_image: Annotated[str, Field(min_length=1)] | None = None
    """An image for the load generator; None for that of the service."""
    context: Annotated[str, Field(min_length=1)] | None = None
    """The cluster, by a context of kubectl; None for kubectl's current context."""
    namespace: Annotated[str, Field(pattern=_DNS_LABEL, max_length=63)] | None = None
    """The cluster's namespace; None for that of the context."""
    nodes: Annotated[list[_NodeName], Field(min_length=2, max_length=2)] | None = None
    """The names of the nodes of service and load generator; None for any two."""

    @property
    def has_own_files(self) -> bool:
        return True

    @property
    def is_remote(self) -> bool:
        return True

    @model_validator(mode="after")
    def _has_two_nodes(self) -> Self:
        if self.nodes is not None and self.nodes[0] == self.nodes[1]:
            raise expected("the names of two different nodes", "nodes")
        return self


MachineName = Literal["kvm", "tcg", "uml"]


class GuestEnvironment(EnvironmentBase):
    """A virtual machine for each service with its proxies, with the files of this machine."""

    machine: MachineName | None = None
    """QEMU with KVM, QEMU without hardware, user-mode Linux; or the first of them that works."""
    memory: Size = 1 << 30
    """Bytes of the guest."""
    cpus: Annotated[int, Field(ge=1, le=1024)] = 1
    """CPUs of the guest."""

    @property
    def own_network(self) -> bool:
        return True

    def of(self, machine: MachineName) -> Self:
        """The same, by this machine, which is part of the name unless another name was given."""
        name = self.name if "name" in self.model_fields_set else f"{self.type}-{machine}"
        return self.model_copy(update={"machine": machine, "name": name})

    @model_validator(mode="after")
    def _named_by_its_machine(self) -> Self:
        return self if self.machine is None else self.of(self.machine)


class VmEnvironment(GuestEnvironment):
    """Programs run in the guest."""

    type: Literal["vm"]
    name: Name = "vm"


class ContainerInVmEnvironment(GuestEnvironment):
    """Programs run in containers of their own in the guest."""

    type: Literal["container-in-vm"]
    name: Name = "container-in-vm"


_Table = Annotated[
    HostEnvironment
    | NetnsEnvironment
    | ContainerEnvironment
    | PodEnvironment
    | PodsAcrossNodesEnvironment
    | VmEnvironment
    | ContainerInVmEnvironment,
    Field(discriminator="type"),
]

ENVIRONMENTS: dict[str, type[EnvironmentBase]] = {
    get_args(table.model_fields["type"].annotation)[0]: table
    for table in get_args(get_args(_Table)[0])
}
"""The environments by their type."""


def _table(written: Any) -> Any:
    """The table that a text in its place means: its type, with defaults for all else."""
    if isinstance(written, dict | EnvironmentBase):
        return written
    if isinstance(written, str) and written in ENVIRONMENTS:
        return {"type": written}
    *others, last = (f"'{name}'" for name in ENVIRONMENTS)
    raise expected(f"{', '.join(others)} or {last}")


Environment = Annotated[
    _Table,
    BeforeValidator(
        _table,
        json_schema_input_type=_Table
        | Literal["host", "netns", "container", "pod", "vm", "container-in-vm"],
    ),
]
"""A table, or a text that is its type."""
