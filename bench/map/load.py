# SPDX-License-Identifier: Apache-2.0
"""Load on services in namespaces, and what it did."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.load.programs import LOAD, LOAD_CPU, SERVICE_CPU
from bench.map.completeness import Exchanged
from bench.map.network import SERVERS, Namespace, Network

FIRST_PORT = 9000
MESSAGE_BYTES = 64
READY_S = 60
"""Until servers listen, the load has begun, or everything is closed."""


class CellError(Exception):
    """Why one measurement has no result; the others go on."""


@dataclass(frozen=True)
class Load:
    """Round trips of small messages. Without connections, each has a socket of its own."""

    transport: str
    rate: int
    """Round trips/s, of all services together."""
    services: int = len(SERVERS)
    connections: int = 0
    """Of all services together."""
    processes: int = 1
    """At each end: a process has a limit of open files."""

    def addresses(self) -> list[list[str]]:
        """Of the services of each process."""
        found = [
            f"{SERVERS[number % len(SERVERS)]}:{FIRST_PORT + number // len(SERVERS)}"
            for number in range(self.services)
        ]
        each = self.services // self.processes
        return [found[first : first + each] for first in range(0, self.services, each)]

    def options(self) -> list[str]:
        """Of tare-load."""
        flavor = "persistent" if self.connections else "ephemeral"
        rate = self.rate / (self.connections or self.services)
        connections = ["--connections", str(self.connections // self.services)]
        options = ["--flavor", flavor, "--rate", f"{rate:.9f}"]
        return [*options, *(connections if self.connections else [])]


@dataclass(frozen=True)
class Done:
    """What the load generator did."""

    rate: float
    """Round trips/s."""
    latency_us: float
    """Median over the services of their median time, from the send (or connect) on."""
    errors: int
    services: dict[str, Exchanged]


def done(reports: Sequence[Any], load: Load) -> Done:
    """From what the processes print."""
    targets = [target for report in reports for target in report["targets"]]
    short_tcp = load.transport == "tcp" and not load.connections
    kept = load.connections // load.services

    def exchanged(requests: int) -> Exchanged:
        return Exchanged(requests if short_tcp else kept, requests * MESSAGE_BYTES)

    medians = [target["service_p50_ns"] for target in targets if target["requests"]]
    return Done(
        sum(target["rate"] for target in targets),
        median(medians) / 1000,
        sum(target["errors"] for target in targets),
        {target["name"]: exchanged(target["requests"]) for target in targets},
    )


class Running:
    """Clients that are sending."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]], load: Load) -> None:
        self.processes = processes
        self.load = load

    def check(self) -> None:
        """Raises CellError if a client has ended."""
        if any(process.poll() is not None for process in self.processes):
            raise CellError(f"the load ended too early: {self.processes[0].args!r}")

    def result(self, seconds: float) -> Done:
        """Waits for the end."""
        reports = []
        for process in self.processes:
            text, errors = process.communicate(timeout=seconds)
            if process.returncode and not text:
                raise CellError(f"{process.args!r}: {errors[-500:]}")
            reports.append(json.loads(text))
        return done(reports, self.load)


@contextmanager
def serving(network: Network, load: Load, folder: Path, seconds: float) -> Iterator[None]:
    """The servers, until the end or for so long."""
    with ExitStack() as stack:
        for number, addresses in enumerate(load.addresses()):
            file = folder / f"addresses-{number}"
            file.write_text("\n".join(addresses))
            options = ["--listen-addrs-file", str(file), "--cpu", str(SERVICE_CPU)]
            serve = [str(LOAD), "serve", load.transport, *options, "--duration", f"{seconds:.3f}s"]
            process = started(network.server.command(serve), stack)
            assert process.stdout
            for _ in addresses:
                if not process.stdout.readline():
                    raise CellError(f"{serve}: {process.communicate()[1][-500:]}")
        yield


@contextmanager
def sending(network: Network, load: Load, folder: Path, seconds: float) -> Iterator[Running]:
    """Clients for so long, from the time on that they send."""
    protocol, counter = (
        ("Tcp", "ActiveOpens") if load.transport == "tcp" else ("Udp", "OutDatagrams")
    )
    before = network.client.counters(protocol)[counter]
    with ExitStack() as stack:
        processes = []
        for number in range(load.processes):
            file = folder / f"addresses-{number}"
            options = ["--addrs-file", str(file), *load.options(), "--cpu", str(LOAD_CPU)]
            options += ["--message-bytes", str(MESSAGE_BYTES), "--duration", f"{seconds:.3f}s"]
            connect = [str(LOAD), "connect", load.transport, *options, "--json"]
            processes.append(started(network.client.command(connect), stack))
        wanted = load.connections or load.services
        wait_for(lambda: network.client.counters(protocol)[counter] - before >= wanted, "load")
        yield Running(processes, load)


def closed(network: Network) -> None:
    """Waits until no connection is open."""
    for end in (network.client, network.server):
        wait_for(partial(no_connections, end), "end of all connections")


def no_connections(end: Namespace) -> bool:
    """TIME_WAIT does not count."""
    return not end.open_connections()


def wait_for(holds: Callable[[], bool], what: str) -> None:
    """Raises CellError after some time."""
    deadline = time.monotonic() + READY_S
    while not holds():
        if time.monotonic() > deadline:
            raise CellError(f"no {what} within {READY_S} s")
        time.sleep(0.1)


def started(command: Sequence[str], stack: ExitStack) -> subprocess.Popen[str]:
    """A program that is killed at the end, if it still runs."""
    pipe = subprocess.PIPE
    process = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    )
    stack.callback(process.kill)
    return process
