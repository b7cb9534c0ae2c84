# SPDX-License-Identifier: Apache-2.0
"""What else shows who talks to whom, from packages: its CPU time beside the same load, and what it
found."""

import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from bench.link.services import cpu_seconds
from bench.map.completeness import Exchanged, Key, Shares, percent
from bench.map.load import CellError, wait_for
from bench.map.network import CLIENT, SERVERS, Namespace, Network

PEERS = ("ss", "conntrack", "bpftrace")
OF_UDP = ("ss", "conntrack")
"""The kernel has no tracepoint of UDP with addresses, so bpftrace shows only TCP."""
TRACKED = ["INPUT", "-m", "conntrack", "--ctstate", "NEW", "-j", "ACCEPT"]
"""The kernel tracks connections of a namespace only if a rule asks for them."""
CONNECTIONS = (
    "tracepoint:sock:inet_sock_set_state /args->newstate == 1/"
    " { @[ntop(args->family, args->saddr), ntop(args->family, args->daddr),"
    " args->sport, args->dport] = count(); }"
    ' interval:s:1 { print(@); clear(@); printf("printed\\n"); }'
)
"""1: established."""
KEYS = {"BPFTRACE_MAP_KEYS_MAX": str(1 << 16)}
"""By default it counts 4,096 connections a second."""
WITH_TRACEPOINTS = [
    *("unshare", "--mount", "sh", "-c"),
    'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"',
    "sh",
]
"""bpftrace reads their formats there; not every system has them mounted."""
LIST_S = 1
"""Between two listings."""

Flow = tuple[str, str, int, int]
"""Local and peer address, local and peer port."""


class Watching:
    """A program that runs beside the load."""

    def __init__(
        self,
        spent: Callable[[], float],
        check: Callable[[], object],
        flows: Callable[[], Iterable[tuple[Flow, int]]],
    ) -> None:
        self._spent = spent
        self._check = check
        self._flows = flows

    def share(self, seconds: float) -> float:
        """Its CPU time per second, over so long."""
        begin, before = time.monotonic(), self._spent()
        time.sleep(seconds)
        self._check()
        return (self._spent() - before) / (time.monotonic() - begin)

    def found(self, wanted: Mapping[Key, Exchanged]) -> Shares:
        """What it has shown of the load until now."""
        return shares_of(self._flows(), wanted)


def shares_of(flows: Iterable[tuple[Flow, int]], wanted: Mapping[Key, Exchanged]) -> Shares:
    """From flows and how often each was set up. A program that shows both ends in one place has
    both edges from it."""
    seen: dict[Key, int] = defaultdict(int)
    for (local, peer, local_port, peer_port), count in flows:
        for key in (("client", local, peer, peer_port), ("server", local, peer, local_port)):
            if key in wanted:
                seen[key] += count
    has_connections = any(exchanged.connections for exchanged in wanted.values())
    counts = [(seen[key], exchanged.connections) for key, exchanged in wanted.items()]
    edges = percent((int(key in seen and seen[key] > 0), 1) for key in wanted)
    return Shares(edges, percent(counts) if has_connections else None, None)


@contextmanager
def watching(name: str, network: Network, folder: Path) -> Iterator[Watching]:
    """While it runs.

    Raises CellError if the program is not installed or ends early.
    """
    if shutil.which(name) is None:
        raise CellError(f"{name} is not installed")
    ends = (network.server, network.client)
    with ExitStack() as stack:
        if name == "ss":
            listings = [Listing(end, folder / f"ss-{end.name}") for end in ends]
            for listing in listings:
                stack.callback(listing.stop)
                listing.start()
            yield Watching(
                lambda: sum(listing.spent for listing in listings),
                lambda: check_all(listings),
                lambda: (
                    (flow, 1) for listing in listings for flow in listed(listing.file.read_text())
                ),
            )
            return
        if name == "conntrack":
            for end in ends:
                end.output("iptables", "-A", *TRACKED)
                stack.callback(end.output, "iptables", "-D", *TRACKED)
            commands = [end.command(["conntrack", "-E"]) for end in ends]
        else:
            commands = [[*WITH_TRACEPOINTS, "bpftrace", "-e", CONNECTIONS]]
        files = [folder / f"{name}-{number}" for number in range(len(commands))]
        processes = []
        for command, file in zip(commands, files, strict=True):
            output = stack.enter_context(file.open("wb"))
            environment = os.environ | KEYS
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)
        if name == "bpftrace":
            wait_for(lambda: has_printed(processes, files[0]), f"output of {name}")
        yield Watching(
            lambda: sum(cpu_seconds(process.pid) for process in processes),
            lambda: run_on(processes),
            lambda: of_files(name, files),
        )


def run_on(processes: Sequence[subprocess.Popen[Any]]) -> None:
    """Raises CellError if one of them has ended."""
    for process in processes:
        if process.poll() is not None:
            raise CellError(f"{process.args!r}: exit code {process.returncode}")


def has_printed(processes: Sequence[subprocess.Popen[Any]], file: Path) -> bool:
    """bpftrace does when its program is attached."""
    run_on(processes)
    return b"printed" in file.read_bytes()


class Listing(Thread):
    """`ss`, once a second in a namespace; all that it prints is in a file."""

    def __init__(self, end: Namespace, file: Path) -> None:
        super().__init__(daemon=True)
        self.command = end.command(["ss", "-H", "-t", "-u", "-n", "-i"])
        self.file = file
        self.spent = 0.0
        self._failure = ""
        self._stopped = Event()

    def run(self) -> None:
        due = time.monotonic()
        with self.file.open("wb") as output:
            while not self._failure:
                process = subprocess.Popen(self.command, stdout=output, stderr=output)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                if process.returncode:
                    self._failure = f"{self.command!r}: exit code {process.returncode}"
                self.spent += usage.ru_utime + usage.ru_stime
                due += LIST_S
                if self._stopped.wait(max(0, due - time.monotonic())):
                    return

    def check(self) -> None:
        """Raises CellError if it failed."""
        if self._failure:
            raise CellError(self._failure)

    def stop(self) -> None:
        """Waits for the last listing."""
        self._stopped.set()
        self.join()


def check_all(listings: Sequence[Listing]) -> None:
    """Raises CellError if one of them failed."""
    for listing in listings:
        listing.check()


def of_files(name: str, files: Sequence[Path]) -> Iterator[tuple[Flow, int]]:
    """Of the server's file and the client's, or of one for both."""
    texts = [file.read_text(errors="replace") for file in files]
    if name == "bpftrace":
        yield from established(texts[0])
        return
    for text, is_server in zip(texts, (True, False), strict=True):
        yield from ((flow, 1) for flow in tracked(text, is_server))


def listed(text: str) -> set[Flow]:
    """The different flows in listings of `ss`; those of unconnected sockets have no peer."""
    flows = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or words[0] not in ("tcp", "udp"):
            continue
        (local, local_port), (peer, peer_port) = (word.rsplit(":", 1) for word in words[4:6])
        with suppress(ValueError):  # the peer is *:*
            flows.add((address(local), address(peer), int(local_port), int(peer_port)))
    return flows


def address(text: str) -> str:
    """Without the device, and IPv4 addresses that are mapped as IPv4."""
    return text.partition("%")[0].strip("[]").removeprefix("::ffff:")


def tracked(text: str, is_server: bool) -> list[Flow]:
    """Flows that `conntrack -E` saw begin in a namespace: from the client, as it sends first."""
    begun = r"\[NEW\] (?:tcp|udp) .*? src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)"
    flows = []
    for line in text.splitlines():
        if match := re.search(begun, re.sub(" +", " ", line)):
            source, destination, sport, dport = match.groups()
            ends = (source, destination, int(sport), int(dport))
            flows.append((ends[1], ends[0], ends[3], ends[2]) if is_server else ends)
    return flows


def established(text: str) -> Iterator[tuple[Flow, int]]:
    """What the program of bpftrace counted, at both ends."""
    counted = r"^@\[([\d.]+), ([\d.]+), (\d+), (\d+)\]: (\d+)$"
    for local, peer, sport, dport, count in re.findall(counted, text, re.MULTILINE):
        if {local, peer} & {CLIENT, *SERVERS}:
            yield (local, peer, int(sport), int(dport)), int(count)
