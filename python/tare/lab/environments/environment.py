# SPDX-License-Identifier: Apache-2.0
"""What every environment offers to the lab, wherever it runs a service."""

import http.client
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tare.lab.environments.launch import Proxy, RunError
from tare.lab.machine import saturation
from tare.lab.machine.saturation import Saturation
from tare.lab.processes.processes import GRACE_S, Family, Process, Processes

if TYPE_CHECKING:
    from tare.lab.environments.bridge_network import BridgeNetwork
    from tare.lab.environments.image import Image
    from tare.plan.schema.services import OwnContainer

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Program:
    """A command of a run: the service, a proxy in front of it, or the load generator."""

    name: str
    """Unique among the living processes of the experiment."""
    command: Sequence[str]
    directory: Path
    log: Path
    """A file of this host that gets what the program prints."""
    cpus: Sequence[int]
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables besides those of tare itself."""
    stop_signal: str = "TERM"
    grace_s: float = GRACE_S
    output: Path | None = None
    """A file of this host that gets standard output; None if the log gets it."""
    proxies: Sequence[Proxy] = ()
    """What will be started in front of a service."""
    container: "OwnContainer | None" = None
    """What the plan says of its own container."""
    is_of_lab: bool = False
    """Whether the lab adds it: an image of the service need not have it."""


LOAD = "load"
"""The name of the program that is the load generator."""


class Watch(Protocol):
    """Watches what the kernel holds some processes back by, from its creation."""

    def look(self, pids: Sequence[int]) -> None:
        """Is given the processes that this host sees now."""

    def saturation(self) -> Saturation:
        """What happened to them up to now."""


@dataclass(frozen=True)
class Attempt:
    """A question to a service that may not be ready: by HTTP with a path, else by TCP."""

    address: str
    port: int
    path: str | None = None
    status: int = 200
    """What is expected."""
    limit_s: float = 1.0

    @property
    def endpoint(self) -> str:
        """Address and port as text."""
        return f"{self.address}:{self.port}"

    @property
    def named(self) -> str:
        """What is asked, for a person."""
        return self.endpoint if self.path is None else f"GET http://{self.endpoint}{self.path}"

    def why_not(self) -> str | None:
        """Asks from the network of this thread: why the service is not ready; None if it is."""
        return self._tcp() if self.path is None else self._http(self.path)

    def _http(self, path: str) -> str | None:
        connection = http.client.HTTPConnection(self.address, self.port, timeout=self.limit_s)
        try:
            connection.request("GET", path)
            found = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return f"{self.named}: {error or type(error).__name__}"
        finally:
            connection.close()
        if found == self.status:
            return None
        return f"GET {path}: status {found}, expected {self.status}"

    def _tcp(self) -> str | None:
        try:
            socket.create_connection((self.address, self.port), self.limit_s).close()
        except OSError as error:
            return f"{self.named}: {error}"
        return None


class Environment(ABC):
    """Where a service of one run is, with its proxies and what is beside it.

    `prepare`, `copy_in`, `start`, `copy_out` and `stop` are called in this order; `stop` also if
    another call failed. A file has the same path inside as on this host, so nothing else in the
    lab needs to know where a program runs.
    """

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        bridge_network: "BridgeNetwork | None" = None,
    ) -> None:
        """With a bridge network, it is joined with the other environments of its run."""
        self.settings, self.processes, self.name = settings, processes, name
        self.bridge_network = bridge_network

    @staticmethod
    @abstractmethod
    def check(_settings: Any) -> None:
        """Raises `tare.plan.expected` with what this machine lacks."""

    @abstractmethod
    def prepare(self) -> None:
        """Creates the place. Raises RunError or StartError if this fails."""

    def announce(  # noqa: B027 (most environments need not know)
        self, paths: Iterable[Path], read_only: Iterable[Path], proxies: int
    ) -> None:
        """Is given the folders that `copy_in` will get and the number of proxies of the service,
        before its address is asked for."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the service listens and its users reach it."""

    @property
    def host_address(self) -> str:
        """Where programs inside reach a server of this host. Raises RunError if they cannot."""
        raise RunError(f"programs in {self.settings.name} cannot reach a server of this host")

    @abstractmethod
    def free_port(self) -> int:
        """A port for another program, which no program uses."""

    @abstractmethod
    def port(self, fixed: int | None) -> int:
        """The port of the service: the plan's fixed port, or a free port.

        Raises RunError if another program uses the fixed port.
        """

    @abstractmethod
    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Gives files and folders of this host to the programs that start later.

        What they write to `paths` is brought back by `copy_out`.
        """

    def add_volume(self, folder: Path, _size: int) -> None:
        """Makes a folder of this host for data; call it before the first program starts.

        A guest has a file system of its own there, of so many bytes. Raises RunError if it cannot
        be made.
        """
        folder.mkdir(parents=True)

    def name_hosts(self, addresses: Mapping[str, str]) -> None:  # noqa: B027
        """Lets programs of containers that start later know hosts by name."""

    def image_of(self, _container: "OwnContainer | None") -> "Image | None":
        """The image of a service that may have a container of its own; None for other files."""
        return None

    @abstractmethod
    def start(self, program: Program) -> Process:
        """Starts a program, and returns a process of this host that represents it.

        A signal to the process reaches the program, and the process ends as the program does.
        Raises StartError if the program or its folder does not exist.
        """

    @abstractmethod
    def family(self, process: Process) -> Family:
        """The processes of a program as this host sees them, and their CPU time."""

    def pids(self, _process: Process) -> list[int]:
        """The processes of a program as this host sees them."""
        return self.family(_process).pids

    def in_network(self, ask: Callable[[], Answer]) -> Answer:
        """Calls a function of this process in the network of the load generator."""
        return ask()

    def why_not_ready(self, attempt: Attempt) -> str | None:
        """Why a service is not ready, as the load generator sees it; None if it is."""
        return self.in_network(attempt.why_not)

    def pids_inside(self, pids: Sequence[int]) -> list[int]:
        """The numbers that the load generator knows processes of this host by."""
        return [*pids]

    def generator_pids(self) -> list[int]:
        """Processes of this host whose control groups limit the load generator."""
        return [os.getpid()]

    @property
    def interfaces(self) -> Sequence[str]:
        """Interfaces of this host that have the whole traffic of a guest."""
        return ()

    def oom_kills(self) -> int:
        """The processes that the kernel of a guest killed because memory ran out."""
        return 0

    def watch(self, pids: Sequence[int]) -> Watch:
        """Begins to watch the control groups of processes of the service and its proxies."""
        return saturation.Watch(pids)

    def watch_generator(self) -> Watch:
        """Begins to watch the control groups that limit the load generator."""
        return saturation.Watch(self.generator_pids(), quota_only=True)

    def manifest(self) -> Path | None:
        """The Kubernetes manifest that it was made of."""
        return None

    def exec_beside(self, _process: Process, words: Sequence[str]) -> str:
        """As `exec`, but with the files of a program that runs."""
        return self.exec(words)

    @abstractmethod
    def exec(self, words: Sequence[str]) -> str:
        """Runs a short command to its end, and returns what it prints.

        Raises RunError with its complaint if it fails.
        """

    def exec_at_load(self, words: Sequence[str]) -> str:
        """As `exec`, but where the load generator is."""
        if self.settings.has_generator:
            return self.exec(words)
        from tare.lab.environments.host import output

        return output(words)

    @abstractmethod
    def copy_out(self, paths: Iterable[Path]) -> None:
        """Brings files that programs wrote to this host; a file that does not exist is left out."""

    @abstractmethod
    def stop(self) -> None:
        """Removes the place; its programs were stopped before."""

    def fingerprint(self) -> dict[str, str]:
        """What tells this environment from others, as a program inside of it sees it."""
        found = self.exec(["sh", "-c", _FINGERPRINT]).splitlines()
        return dict(zip(("kernel", "cpus", "memory", "network", "root"), found, strict=True))


_FINGERPRINT = """\
uname -sr
nproc
sed -n 's/^MemTotal: *//p' /proc/meminfo
readlink /proc/self/ns/net
stat -c %d:%i /
"""
