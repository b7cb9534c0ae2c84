# SPDX-License-Identifier: Apache-2.0
"""Linked connections beside TCP, a Unix socket and a bare ring; Redis, nginx and Envoy linked."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cases import Case, publish
from bench.link import proxied, services
from bench.turns import Turner, alternate

from tare.native import native

HERE = Path(__file__).parent
LINKED, TCP, UNIX, RING = "tare-link", "TCP", "Unix socket", "bare ring"
TWO_CPUS, ONE_CPU = (0, 1), (0, 0)
WHY = (
    "Short of the bare ring: a round trip has four calls. In each of them, the library finds the"
    " descriptor, takes a lock and counts; the bare ring does none of that."
)
USUAL_SHARE = 0.99
"""Of the bytes that go through the ring: a case with less says so."""
TURN_NS = 4_000_000
"""A turn of each subject takes about so long."""


@dataclass(frozen=True)
class Work:
    """What two processes do."""

    kind: str
    size: int
    waits: str
    cpus: tuple[int, int]

    @property
    def name(self) -> str:
        size = f"{self.size // 1024}k" if self.size >= 1024 else str(self.size)
        cpus = "" if self.cpus == TWO_CPUS else "-one-cpu"
        return f"{self.kind}-{size}-{self.waits}{cpus}"

    def arguments(self, transport: str) -> list[str]:
        return [transport, self.kind, str(self.size), self.waits, *map(str, self.cpus)]


WORKS = [
    *(
        Work("round", size, waits, cpus)
        for cpus in (TWO_CPUS, ONE_CPU)
        for waits in ("block", "epoll")
        for size in (64, 1 << 10, 4 << 10)
    ),
    *(Work("stream", size, "block", TWO_CPUS) for size in (100 << 10, 1 << 20)),
]


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    turns = 20 if quick else 200
    envoy = proxied.find_envoy()
    with TemporaryDirectory() as name:
        cases = [case for work in WORKS for case in measured(work, turns, Path(name))]
        cases += services.measured(Path(name), quick)
        cases += proxied.measured(Path(name), envoy, services.turns(quick))
    about = (
        f"{turns} turns of about {TURN_NS // 1_000_000} ms in random order. Round trips of a"
        " message and its echo, or streams of messages with an answer to the last one. Both"
        " processes on two CPUs, or on one where the name ends so. The bare ring has no sockets; it"
        " spins for 20 µs on two CPUs. redis-benchmark (1 and 50 connections) and wrk (8"
        " connections, files of 700 B to 10 MB, and a connection for each request of 700 B) run"
        f" {services.turns(quick)} turns of about a second beside a server on the other CPU, both"
        " ends linked or none; a silent pair is watched for some seconds. Files through Envoy:"
        " one user, turns of half a second, Envoy on a CPU of its own. Ratios and differences"
        " are medians over the turns."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-link"
    return publish("link", cases, command, about, WHY)


def measured(work: Work, turns: int, folder: Path) -> Iterator[Case]:
    """The time of a message over a link, beside each of the others."""
    program = folder / "exchange"
    subprocess.run(["cc", "-O2", HERE / "exchange.c", "-o", program], check=True)
    counted = folder / "counted.json"
    link = f'exec "{native("bin", "tare-link")}" --json -- "$@" 2>"{counted}"'
    commands = {
        LINKED: ["sh", "-c", link, "sh", str(program), *work.arguments("tcp")],
        TCP: [str(program), *work.arguments("tcp")],
        UNIX: [str(program), *work.arguments("unix")],
        RING: [str(program), *work.arguments("ring")],
    }
    with ExitStack() as stack:
        subjects = {}
        for name, command in commands.items():
            turner = Turner(command, {}, None, stack)
            pieces = 20
            turner.turn(pieces)
            pieces = max(10, round(TURN_NS / turner.turn(pieces)))
            pieces = max(10, round(TURN_NS / turner.turn(pieces)))
            subjects[name] = (turner, pieces)
        values = alternate(subjects, turns, seed=work.size)
    counts = json.loads(counted.read_text().splitlines()[-1])
    ring, tcp = counts["ring_bytes_sent"], counts["tcp_bytes_sent"]
    share = ring / max(1, ring + tcp)
    note = "" if share >= USUAL_SHARE else f"{share:.0%} of the bytes by the ring"
    own = [value / 1000 for value in values[LINKED]]
    for peer in (TCP, UNIX, RING):
        name = f"{work.name}-{peer.split()[0].lower()}"
        yield Case(name, LINKED, peer, "µs", own, [value / 1000 for value in values[peer]], note)
