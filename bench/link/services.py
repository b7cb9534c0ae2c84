# SPDX-License-Identifier: Apache-2.0
"""Redis and nginx with their own clients: both ends linked, beside the same over TCP."""

import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.cases import Case
from bench.load import redis
from bench.load.programs import in_turns, output
from bench.nginx import Nginx
from bench.turns import Turner, on_cpu

from tare.native import native

LINKED, TCP = "tare-link", "TCP"
LINK = [str(native("bin", "tare-link")), "--"]
CLIENT_CPU, SERVICE_CPU = 1, 0
SIZES = {"700": 700, "100k": 100 << 10, "10m": 10 << 20}
SILENT_S = 5


@dataclass(frozen=True)
class Turn:
    """What a client got: requests a second, and CPU seconds of both ends for a request."""

    rate: float
    cpu: float


def measured(folder: Path, quick: bool) -> Iterator[Case]:
    """Requests a second, and CPU time where that has a bar."""
    yield from of_redis(folder, turns(quick))
    yield from of_nginx(folder, turns(quick))
    yield silent(folder)


def turns(quick: bool) -> int:
    """Of a client with each server."""
    return 5 if quick else 15


def of_redis(folder: Path, repetitions: int) -> Iterator[Case]:
    """redis-benchmark."""
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(redis.serving(folder, wrap))
            for name, wrap in ((LINKED, LINK), (TCP, []))
        }
        for test in ("get", "set"):
            for users, requests in ((1, 50_000), (50, 200_000)):

                def run(name: str, test: str = test, users: int = users, n: int = requests) -> Turn:
                    server = servers[name]
                    shared = ["-p", str(server.port), "-c", str(users), "-n", str(n), "-t", test]
                    wrap = LINK if name == LINKED else []
                    command = on_cpu(CLIENT_CPU, [*wrap, "redis-benchmark", *shared, "--csv"])
                    pattern = rf'"{test.upper()}","([\d.]+)"'
                    return timed(command, server.pid, pattern, n)

                yield from compared(f"redis-{test}-{users}", run, repetitions)


def of_nginx(folder: Path, repetitions: int) -> Iterator[Case]:
    """Wrk with 8 connections; the last case opens one for each request."""
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(Nginx(folder / name.lower(), wrap, {}, SERVICE_CPU))
            for name, wrap in ((LINKED, LINK), (TCP, []))
        }
        for name in servers:
            for size, length in SIZES.items():
                (folder / name.lower() / "page" / size).write_bytes(bytes(length))
        pages = [(f"nginx-{size}", size, list[str]()) for size in SIZES]
        short = ("nginx-short", "700", ["-H", "Connection: close"])
        for case, page, options in [*pages, short]:

            def run(name: str, page: str = page, options: Sequence[str] = options) -> Turn:
                server = servers[name]
                wrap = LINK if name == LINKED else []
                wrk = ["wrk", "-t1", "-c8", "-d1s", *options, f"{server.url}{page}"]
                command = on_cpu(CLIENT_CPU, [*wrap, *wrk])
                return timed(command, server.process.pid, r"Requests/sec:\s+([\d.]+)")

            yield from compared(case, run, repetitions)


def compared(name: str, run: Callable[[str], Turn], repetitions: int) -> Iterator[Case]:
    """Both in turns of about a second."""
    of_turns: dict[str, list[Turn]] = {LINKED: [], TCP: []}

    def once(subject: str) -> float:
        of_turns[subject].append(run(subject))
        return of_turns[subject][-1].rate

    rates = in_turns({subject: partial(once, subject) for subject in of_turns}, repetitions)
    yield Case(name, LINKED, TCP, "requests/s", rates[LINKED], rates[TCP])
    cpu = {subject: [1e6 * turn.cpu for turn in found] for subject, found in of_turns.items()}
    yield Case(f"{name}-cpu", LINKED, TCP, "µs of CPU a request", cpu[LINKED], cpu[TCP])


def timed(command: list[str], server: int, pattern: str, requests: int | None = None) -> Turn:
    """Runs a client to its end; the CPU time of the server's processes counts, too."""
    before = cpu_seconds(server) + children_cpu_seconds()
    began = time.monotonic()
    text = output(command)
    seconds = time.monotonic() - began
    cpu = cpu_seconds(server) + children_cpu_seconds() - before
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f"{' '.join(command)} printed no rate: {text[-500:]}")
    rate = float(found[1])
    return Turn(rate, cpu / (requests or rate * seconds))


def children_cpu_seconds() -> float:
    """Of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_seconds(pid: int) -> float:
    """Of a process, of all its threads and of the processes that it has started."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0]) / 1e9
        total += sum(map(cpu_seconds, map(int, (task / "children").read_text().split())))
    return total


def silent(folder: Path) -> Case:
    """A linked pair that exchanged messages and is silent then: its share of a CPU."""
    program = folder / "exchange"
    with ExitStack() as stack:
        command = [*LINK, str(program), "tcp", "round", "64", "epoll", "0", "1"]
        pair = Turner(command, {}, None, stack)
        pair.turn(10_000)
        time.sleep(1)
        shares = []
        for _ in range(SILENT_S):
            before, began = cpu_seconds(pair.process.pid), time.monotonic()
            time.sleep(1)
            shares.append(
                100 * (cpu_seconds(pair.process.pid) - before) / (time.monotonic() - began)
            )
    return Case("silent", LINKED, "", "% of a CPU", shares)
