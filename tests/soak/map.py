# SPDX-License-Identifier: Apache-2.0
"""High churn below `tare map`: namespaces, processes, peers and ports come and go. Its memory and
that of its maps in the kernel stay flat, no interval is missed, and all counts are exact.

Names and addresses repeat, so that the number of edges is bounded but for the numbers that the
kernel gives to new namespaces; memory may grow with these edges only. When there are more edges
than the map has room for, idle ones are added to the edge `other`: it has what the others lack.
"""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from bench.results import renew
from tests.map.hosts import Host, connect, executable
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for

from tare.native import native

SERVERS = ("soak-server-0", "soak-server-1", "soak-server-2")
CLIENTS = ("soak-client-0", "soak-client-1")
"""Names of programs."""
WORKERS = 2
CABLES = 4
"""Addresses of each worker's pairs of namespaces."""
PORTS = 16
FIRST_PORT = 20_000
CONNECTIONS, DATAGRAMS = 25, 10
"""By each client, to each address of a server."""
MESSAGE_BYTES = 100
KERNEL_BYTES, PROCESS_BYTES = 1 << 10, 8 << 10
"""What a new edge may take in the maps, and in the process that prints it."""
SLACK_BYTES = 1 << 20
"""Pages of the allocator, and processes that are looked up again each minute."""


class Ends(NamedTuple):
    """An edge, whatever the number of its namespace."""

    program: str
    role: str
    protocol: str
    local: str
    peer: str
    port: int


class Counts(NamedTuple):
    """What an edge has, each way."""

    opened: int
    closed: int
    bytes_sent: int
    bytes_received: int
    datagrams: int


class Memory(NamedTuple):
    """At one interval."""

    edges: int
    kernel: int
    process: int


@dataclass
class Churn:
    """What the programs did."""

    folder: Path
    seconds: float
    expected: Counter[tuple[Ends, str]] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def work(self, worker: int, stop: Event) -> None:
        """One pair of namespaces after the other, until the time is over or a worker fails."""
        deadline, turn = time.monotonic() + self.seconds, 0
        while time.monotonic() < deadline and not stop.is_set():
            try:
                with pair(worker, turn) as hosts:
                    done = self._turn(hosts, worker, turn)
            except BaseException:
                stop.set()
                raise
            with self._lock:
                self.expected += done
                self.numbers.update(namespaces=2, processes=4, turns=1)
            turn += 1

    def _turn(self, hosts: tuple[Host, Host], worker: int, turn: int) -> Counter[tuple[Ends, str]]:
        cable = cable_of(worker, turn)
        done = Counter[tuple[Ends, str]]()
        names = [SERVERS[(turn + number) % len(SERVERS)] for number in range(2)]
        servers = [hosts[1].start(executable(self.folder, name)) for name in names]
        name = CLIENTS[turn % len(CLIENTS)]
        far, near = (host.start(executable(self.folder, name)) for host in hosts)
        ways = [
            (far, f"10.99.{cable}.1", f"10.99.{cable}.2"),
            (far, f"fd99:{cable}::1", f"fd99:{cable}::2"),
            (near, "127.0.0.1", "127.0.0.1"),
        ]
        for number, (server, server_name) in enumerate(zip(servers, names, strict=True)):
            port = FIRST_PORT + (2 * turn + number) % PORTS
            for client, local, peer in ways:
                server.ask("listen", peer, port)
                server.ask("bind", peer, port)
                client.ask("short", peer, port, CONNECTIONS, MESSAGE_BYTES)
                client.ask("datagrams", "connected", peer, port, DATAGRAMS, MESSAGE_BYTES)
                for ends in (
                    (name, "client", "{}", local, peer, port),
                    (server_name, "server", "{}", peer, local, port),
                ):
                    tcp, udp = (
                        Ends(*ends)._replace(protocol=protocol) for protocol in ("tcp", "udp")
                    )
                    done[tcp, "connections"] += CONNECTIONS
                    done[udp, "datagrams"] += DATAGRAMS
        wait_for(lambda: not any(host.open_sockets() for host in hosts), "the end of connections")
        return done

    def counts(self) -> dict[Ends, Counts]:
        """As the map must have them."""
        found = {}
        for (ends, _), number in self.expected.items():
            length = number * MESSAGE_BYTES
            is_tcp = ends.protocol == "tcp"
            opened, datagrams = (number, 0) if is_tcp else (0, number)
            found[ends] = Counts(opened, opened, length, length, datagrams)
        return found


def cable_of(worker: int, turn: int) -> int:
    """The number in the addresses of a turn."""
    return 1 + worker * CABLES + turn % CABLES


@contextmanager
def pair(worker: int, turn: int) -> Iterator[tuple[Host, Host]]:
    """Two namespaces with a cable; their programs are killed at the end."""
    with ExitStack() as stack:
        hosts = []
        for number in range(2):
            hosts.append(Host(f"tare-soak-{os.getpid()}-{worker}-{turn}-{number}"))
            stack.callback(hosts[-1].remove)
        connect(hosts[0], hosts[1], cable_of(worker, turn))
        yield hosts[0], hosts[1]


class Reader(Thread):
    """All lines of the tracer, and its memory at each of them."""

    def __init__(self, tracer: "subprocess.Popen[str]") -> None:
        super().__init__(daemon=True)
        self.tracer = tracer
        self.began = Event()
        self.ended = Event()
        self.last: dict[str, Any] = {}
        self.lines = 0
        self.memory: list[Memory] = []

    def run(self) -> None:
        assert self.tracer.stdout
        try:
            for line in self.tracer.stdout:
                self.last = json.loads(line)
                self.lines += 1
                pid = self.tracer.pid
                # The last line may come from a process that has exited.
                if self.tracer.poll() is None and (kernel := kernel_bytes(pid)):
                    number = len(self.last["edges"])
                    self.memory.append(Memory(number, kernel, resident_bytes(pid)))
                self.began.set()
        finally:
            self.ended.set()
            self.began.set()


def kernel_bytes(pid: int) -> int:
    """Memory of the BPF maps that a process holds, as the kernel counts it."""
    found = {}
    for descriptor in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            lines = descriptor.read_text().splitlines()
        except FileNotFoundError:  # closed meanwhile
            continue
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if "map_id" in fields and "memlock" in fields:  # a link has the first one, too
            found[fields["map_id"]] = int(fields["memlock"])
    return sum(found.values())


def resident_bytes(pid: int) -> int:
    """Memory of a process that no file has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    return 0


def found(edges: list[dict[str, Any]]) -> dict[Ends, Counts]:
    """Of the programs of this series."""
    sums: dict[Ends, Counts] = {}
    for edge in edges:
        if edge["program"] not in (*SERVERS, *CLIENTS):
            continue
        ends = Ends(*(edge[name] for name in Ends._fields))
        assert edge["packets_sent"] == edge["packets_received"] or ends.protocol == "tcp", edge
        counts = [edge[name] for name in Counts._fields[:-1]]
        counts.append(edge["packets_sent"] if ends.protocol == "udp" else 0)
        before = sums.get(ends, Counts(0, 0, 0, 0, 0))
        sums[ends] = Counts(*map(sum, zip(before, counts, strict=True)))
    return sums


def too_many(counts: dict[Ends, Counts], expected: dict[Ends, Counts]) -> set[Ends]:
    """The edges that have more than happened."""
    nothing = Counts(0, 0, 0, 0, 0)
    return {ends for ends in counts if any(less(counts[ends], expected.get(ends, nothing)))}


def total(counts: Iterable[Counts]) -> Counts:
    return Counts(*map(sum, zip(*counts, strict=True)))


def less(counts: Counts, others: Counts) -> Counts:
    """What the others lack of each; 0 where they have as much."""
    return Counts(*(max(0, count - other) for count, other in zip(counts, others, strict=True)))


def of_other(edges: list[dict[str, Any]]) -> Counts:
    """What was added to the edge `other`; datagrams and TCP segments are one number there."""
    (other,) = [edge for edge in edges if edge["role"] == "other"]
    counts = [other[name] for name in Counts._fields[:-1]]
    return Counts._make([*counts, other["packets_sent"]])


def highest(memory: list[Memory]) -> Memory:
    """Each of its numbers."""
    return Memory(*(max(column) for column in zip(*memory, strict=True)))


def grown(memory: list[Memory]) -> list[str]:
    """What grew in the second half by more than its new edges may take; nothing if it is flat."""
    half = len(memory) // 2
    halves = [highest(part) for part in (memory[:half], memory[half:])]
    (edges, *before), (more_edges, *after) = halves
    return [
        f"{name}: {old:,} and then {new:,} bytes"
        for name, old, new, each in zip(
            ("kernel", "process"), before, after, (KERNEL_BYTES, PROCESS_BYTES), strict=True
        )
        if new - old > SLACK_BYTES + each * max(0, more_edges - edges)
    ]


def traced(churn: Churn) -> Reader:
    """What a tracer printed during the churn."""
    command = [native("bin", "tare-map"), "--jsonl", "--interval", "1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
        reader = Reader(tracer)
        reader.start()
        try:
            assert reader.began.wait(SECONDS), "the tracer has printed nothing"
            with ThreadPoolExecutor(WORKERS) as threads:
                stop = reader.ended
                workers = [threads.submit(churn.work, number, stop) for number in range(WORKERS)]
            for done in workers:
                done.result()
            assert tracer.poll() is None, "the tracer has exited"
            tracer.send_signal(signal.SIGINT)
            reader.join(SECONDS)
            assert tracer.wait(SECONDS) == 0
        finally:
            tracer.kill()
    return reader


def run(minutes: float) -> None:
    """Makes churn for so long and renews the section; raises AssertionError if a count is wrong,
    an interval is missing or memory grew."""
    if not may_make_namespaces():
        print("map: BPF and network namespaces need root", flush=True)
        return
    with TemporaryDirectory() as folder:
        churn = Churn(Path(folder), 60 * minutes)
        # Before the tracer starts: later, they could get the inodes of programs that it has seen
        # and that were deleted.
        for name in (*SERVERS, *CLIENTS):
            executable(churn.folder, name)
        reader = traced(churn)
    last = reader.last
    text = report(churn, reader)
    print(text, flush=True)
    expected, counts = churn.counts(), found(last["edges"])
    removed = last["completeness"]["removed_edges"]
    if removed:
        wrong = too_many(counts, expected)
    else:
        wrong = {ends for ends in expected | counts if expected.get(ends) != counts.get(ends)}
    for ends in sorted(wrong)[:20]:
        print(f"{ends}: {counts.get(ends)}, expected {expected.get(ends)}", flush=True)
    renew(
        "map-churn",
        "tare map under churn",
        f"python -m tests.soak map --minutes {minutes:g}",
        text + f" {len(wrong)} of {len(expected)} counts are wrong.",
    )
    assert not wrong, f"{len(wrong)} edges are wrong"
    assert last["interval"] == reader.lines
    assert not last["missed_intervals"], f"{last['missed_intervals']} intervals were missed"
    assert not last["missing"], last["missing"]
    assert {name for name, number in last["completeness"].items() if number} <= {"removed_edges"}
    if removed:
        lacking = less(total(expected.values()), total(counts.values()))
        assert not any(less(lacking, of_other(last["edges"]))), lacking
    assert not (growth := grown(reader.memory)), growth


def report(churn: Churn, reader: Reader) -> str:
    """What happened, and what it took."""
    connections, datagrams = (
        sum(number for (_, name), number in churn.expected.items() if name == what) // 2
        for what in ("connections", "datagrams")
    )
    half = len(reader.memory) // 2
    first, second = highest(reader.memory[:half]), highest(reader.memory[half:])
    lost = {name: number for name, number in reader.last["completeness"].items() if number}
    return (
        f"{churn.numbers['namespaces']:,} network namespaces and {churn.numbers['processes']:,}"
        f" processes came and went; {connections:,} connections and {datagrams:,} datagrams each"
        f" way, over IPv4, IPv6 and loopback. {reader.lines:,} intervals of 1 s,"
        f" {reader.last['missed_intervals']} missed; lost: {lost or 'nothing'}. Highest in the"
        f" first and in the second half: {first.edges:,} and {second.edges:,} edges,"
        f" {first.kernel / 1024:,.0f} and {second.kernel / 1024:,.0f} KiB of maps in the kernel,"
        f" {first.process / 1024:,.0f} and {second.process / 1024:,.0f} KiB of the process."
    )
