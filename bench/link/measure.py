# SPDX-License-Identifier: Apache-2.0
"""Linked connections beside TCP, a Unix socket and a bare ring; Redis, nginx and Envoy linked."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.cases import Case, matched, publish, read_bars
from bench.link import proxied, services, short_connections
from bench.link.sockmap import Sockmap, build
from bench.turns import Turner, alternate

from tare.native import native

HERE = Path(__file__).parent
LINKED, TCP, UNIX, RING = "tare-link", "TCP", "Unix socket", "bare ring"
PIPES = {"pipe": "pipe", "FIFO": "fifo"}
NO_SPIN = "tare-link --no-spin"
SOCKMAP = "sockmap redirect"
TWO_CPUS, ONE_CPU = (0, 1), (0, 0)
WHY = (
    "Short of the bare ring: a round trip has four calls. In each of them, the library finds the"
    " descriptor, takes a lock and counts; the bare ring does none of that."
)
USUAL_SHARE = 0.99
"""Of the bytes that go through the ring: a case with less says so."""
TURN_NS = 4_000_000
"""A turn of each subject takes about so long."""
FEWEST, FEWEST_OF_MANY_MB = 10, 3
"""Pieces of work in a turn."""
USUAL_RING = 20
SLOWEST_US, FEWEST_GB_S = 1, 3
"""Of the bare ring, for 64 B and for 10 MB, on two CPUs."""
SWEPT_RINGS = (12, 14, 16, 18, 22, 24)
"""Sizes of bare rings as powers of two, beside the usual one."""
SMALL_RINGS = "130K"
"""Memory for two rings of 64 KiB, so that none grows."""


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

    @property
    def fewest(self) -> int:
        return FEWEST if self.size <= 1 << 20 else FEWEST_OF_MANY_MB

    def arguments(self, transport: str) -> list[str]:
        return [transport, self.kind, str(self.size), self.waits, *map(str, self.cpus)]


WORKS = [
    *(
        Work("round", size, waits, cpus)
        for cpus in (TWO_CPUS, ONE_CPU)
        for waits in ("block", "epoll")
        for size in (64, 1 << 10, 4 << 10, 64 << 10)
    ),
    *(
        Work("stream", size, waits, cpus)
        for cpus in (TWO_CPUS, ONE_CPU)
        for waits in ("block", "epoll")
        for size in (64 << 10, 100 << 10, 1 << 20, 10 << 20)
    ),
]


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    turns = 20 if quick else 200
    envoy = proxied.find_envoy()
    with TemporaryDirectory() as name:
        sockmap = build(Path(name))
        works = [measured(work, turns, Path(name), sockmap) for work in WORKS]
        cases = [case for work in works for case in work]
        cases += [*swept(turns, Path(name)), started(turns)]
        cases += short_connections.measured(Path(name), 4_000 if quick else 100_000)
        cases += services.measured(Path(name), quick)
        cases += proxied.measured(Path(name), envoy, services.turns(quick))
    about = (
        f"{turns} turns of about {TURN_NS // 1_000_000} ms in random order. Round trips of a"
        " message and its echo, or streams of messages with an answer to the last one. Both"
        " processes on two CPUs, or on one where the name ends so. The bare ring has no sockets; it"
        f" has 2^{USUAL_RING} bytes, and spins for 20 µs on two CPUs.\n\nredis-benchmark (1 and 50"
        " connections) and wrk (8 connections, files of 700 B to 10 MB, and a connection for each"
        f" request of 700 B) run {services.turns(quick)} turns of about a second beside a server on"
        " the other CPU, both ends linked or none; a silent pair is watched for some seconds. Files"
        " of nginx, and of a tiny server in C (`envoy-tiny`), through Envoy:"
        " one user, turns of half a second, Envoy on a CPU of its own; then the same beside a TCP"
        " stream of 5 MB/s. Ratios and differences are medians over the turns."
        " [Why bars are not reached]"
        "(decisions/0199-bars-of-links-that-two-cpus-do-not-reach.md)."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-link"
    bars = matched(read_bars("link"), cases)
    of_bare = [case for case in cases if case.name in bars and case.peer == RING]
    is_short = not all(bars[case.name].met(case) for case in of_bare)
    void = why_void(cases)
    left_out = [] if isinstance(sockmap, Sockmap) else [f"Not measured: {SOCKMAP}: {sockmap}."]
    more = "\n\n".join([*void, *left_out, *[WHY][:is_short]])
    return publish("link", cases, command, about, more) and not void


def why_void(cases: Sequence[Case]) -> list[str]:
    """What the limit itself does not reach here: then the bars say nothing."""
    found = {case.name: case for case in cases if case.peer == RING}
    short, long = found["round-64-block-bare"], found["stream-10240k-block-bare"]
    took, rate = median(short.peer_values), (10 << 20) / median(long.peer_values) / 1000
    reasons = []
    if took > SLOWEST_US:
        reasons.append(f"the bare ring takes {took:.2f} µs for 64 B, over {SLOWEST_US} µs")
    if rate < FEWEST_GB_S:
        reasons.append(f"the bare ring moves {rate:.1f} GB/s, below {FEWEST_GB_S} GB/s")
    return [f"Void: {reason}." for reason in reasons]


def measured(work: Work, turns: int, folder: Path, sockmap: Sockmap | str) -> Iterator[Case]:
    """The time of a message over a link, beside each of the others."""
    program = compiled(folder)
    counted = folder / "counted.json"
    commands = {
        LINKED: linked(counted, [str(program), *work.arguments("tcp")]),
        TCP: [str(program), *work.arguments("tcp")],
        UNIX: [str(program), *work.arguments("unix")],
        RING: [str(program), *work.arguments("ring")],
    }
    if isinstance(sockmap, Sockmap):
        commands[SOCKMAP] = sockmap.around(commands[TCP])
    if work.waits == "block":
        commands |= {name: [str(program), *work.arguments(kind)] for name, kind in PIPES.items()}
    if work.kind == "round" and work.cpus == TWO_CPUS:
        commands[NO_SPIN] = linked(folder / "no-spin.json", commands[TCP], "--no-spin")
    values = in_turns(commands, turns, work.size, work.fewest)
    counts = json.loads(counted.read_text().splitlines()[-1])
    ring, tcp = counts["ring_bytes_sent"], counts["tcp_bytes_sent"]
    share = ring / max(1, ring + tcp)
    note = "" if share >= USUAL_SHARE else f"{share:.0%} of the bytes by the ring"
    if isinstance(sockmap, Sockmap):
        assert sockmap.redirected() > turns, "sockmap redirected next to nothing"
    if NO_SPIN in commands:
        name = f"{work.name}-no-spin-tcp"
        yield Case(name, NO_SPIN, TCP, "µs", values[NO_SPIN], values[TCP])
    for peer in [name for name in commands if name not in (LINKED, NO_SPIN)]:
        name = f"{work.name}-{peer.split()[0].lower()}"
        notes = [note] if note else []
        if work.kind == "stream" and peer in (TCP, UNIX):
            notes.append(limit(values[RING], values[peer]))
        yield Case(name, LINKED, peer, "µs", values[LINKED], values[peer], "; ".join(notes))


def limit(ring: Sequence[float], peer: Sequence[float]) -> str:
    """What can be reached at most: the ratio of the bare ring's times to a peer's."""
    ratio = Case("", RING, "", "µs", ring, peer).ratio
    return f"the bare ring's ratio is {ratio:.3f}"


def swept(turns: int, folder: Path) -> Iterator[Case]:
    """Streams of 1 MB through rings of other sizes: bare ones, and those of a link."""
    program = compiled(folder)
    work = Work("stream", 1 << 20, "block", TWO_CPUS)
    bare = {bits: f"bare ring of 2^{bits} bytes" for bits in sorted({*SWEPT_RINGS, USUAL_RING})}
    small = f"{LINKED}, rings of 64 KiB"
    commands = {
        name: [str(program), *work.arguments(f"ring:{1 << bits}")] for bits, name in bare.items()
    }
    ends = [str(program), *work.arguments("tcp")]
    commands[LINKED] = linked(folder / "counted.json", ends)
    commands[small] = linked(folder / "counted-small.json", ends, "--memory", SMALL_RINGS)
    values = in_turns(commands, turns, USUAL_RING)
    usual = bare[USUAL_RING]
    for bits in SWEPT_RINGS:
        name = bare[bits]
        yield Case(f"rings-2^{bits}-bare", name, usual, "µs", values[name], values[usual])
    yield Case("rings-2^16-link", small, LINKED, "µs", values[small], values[LINKED])


def started(turns: int) -> Case:
    """A program that does nothing, from its start to its end."""
    commands = {LINKED: [str(native("bin", "tare-link")), "--", "true"], "alone": ["true"]}
    values: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True)
            values[name].append((time.perf_counter() - begin) * 1000)
    return Case("start", LINKED, "alone", "ms", values[LINKED], values["alone"])


def compiled(folder: Path) -> Path:
    program = folder / "exchange"
    if not program.exists():
        subprocess.run(["cc", "-O2", HERE / "exchange.c", "-o", program], check=True)
    return program


def linked(counted: Path, command: Sequence[str], *options: str) -> list[str]:
    """The command under tare-link, which leaves its counts in a file."""
    link = f'exec "{native("bin", "tare-link")}" --json {" ".join(options)} -- "$@" 2>"{counted}"'
    return ["sh", "-c", link, "sh", *command]


def in_turns(
    commands: Mapping[str, Sequence[str]], turns: int, seed: int, fewest: int = FEWEST
) -> dict[str, list[float]]:
    """Microseconds of a message of each command, one value a turn."""
    with ExitStack() as stack:
        subjects = {}
        for name, command in commands.items():
            turner = Turner(command, {}, None, stack)
            pieces = 2 * fewest
            turner.turn(pieces)
            for _ in range(2):
                pieces = max(fewest, round(TURN_NS / turner.turn(pieces)))
            subjects[name] = (turner, pieces)
        values = alternate(subjects, turns, seed)
    return {name: [value / 1000 for value in times] for name, times in values.items()}
