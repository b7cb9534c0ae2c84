# SPDX-License-Identifier: Apache-2.0
"""tare-load beside wrk in a closed loop, and beside open-loop generators at half of capacity."""

import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.cases import Case, publish
from bench.load import peers
from bench.nginx import Nginx
from bench.turns import on_cpu

from tare.lab.ports import free_port
from tare.native import native

HERE = Path(__file__).parent
LOAD = native("bin", "tare-load")
SERVICE_CPU, LOAD_CPU = 0, 1
USERS = 16
MANY = 1_000_000
FEW = 100_000


@dataclass(frozen=True)
class Turns:
    """How often, how long, and where the files go."""

    pairs: int
    seconds: int
    folder: Path


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    with TemporaryDirectory() as name:
        turns = Turns(*((5, 1) if quick else (10, 3)), Path(name))
        with Nginx(turns.folder / "nginx", [], {}, SERVICE_CPU) as nginx:
            cases = [
                closed("closed-nginx", nginx.url, USERS, turns),
                closed("closed-nginx-1", nginx.url, 1, turns),
                *opened(nginx.url, turns),
            ]
        with null_server(turns.folder) as url:
            cases += [
                closed("closed-null", url, USERS, turns),
                closed("closed-null-1", url, 1, turns),
                allocations(url, turns.folder),
            ]
    about = (
        f"Medians of {turns.pairs} turns of {turns.seconds} s in random order, of closed loops of"
        f" {turns.pairs * turns.seconds} turns of 1 s; one thread on one CPU, the server on the"
        f" other; {USERS} connections, 1 where the name ends so."
        " tare-load records every request in a file, the others what they print. Ratios and"
        " differences are medians over the turns."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-load"
    return publish("load", cases, command, about)


def closed(name: str, url: str, users: int, turns: Turns) -> Case:
    """Requests a second back to back, beside wrk, in the shortest turns that wrk can take."""
    ours = ["--users", str(users), "--warmup", "0s", "--duration", "1s"]
    wrk = on_cpu(LOAD_CPU, ["wrk", "-t1", f"-c{users}", "-d1s", url])
    rates = in_turns(
        {
            "tare load": lambda: float(tare_load([url, *ours], turns.folder)["rate"]),
            "wrk": lambda: peers.number(r"Requests/sec:\s+([\d.]+)", output(wrk)),
        },
        turns.pairs * turns.seconds,
    )
    return Case(name, "tare load", "wrk", "requests/s", rates["tare load"], rates["wrk"])


def opened(url: str, turns: Turns) -> list[Case]:
    """An open loop at half of what the server bears: lag, and p99 beside others'."""
    command = [*on_cpu(LOAD_CPU, [str(LOAD), "http", url]), "--capacity", "--json"]
    rate = round(json.loads(output(command))["capacity"]["rate"] / 2)
    asked = peers.Asked(url, rate, USERS, turns.seconds, turns.folder)
    seen: list[Seen] = []
    found = peers.found()
    reached_by: dict[str, list[float]] = {one.name: [] for one in found}

    def ours() -> float:
        options = ["--mode", "open", "--rate", str(rate), "--users", str(USERS), "--warmup", "0s"]
        tare_load([url, *options, "--duration", f"{turns.seconds}s"], turns.folder)
        seen.append(of_samples(turns.folder / "samples.arrow"))
        return seen[-1].p99_us

    def other(peer: peers.Peer) -> Callable[[], float]:
        def turn() -> float:
            p99, reached = peer.read(output(peer.command(asked)), asked)
            reached_by[peer.name].append(reached)
            return p99 * 1e6

        return turn

    p99s = in_turns({"tare load": ours} | {one.name: other(one) for one in found}, turns.pairs)
    note = f"{rate} requests/s, half of the capacity"
    lags, from_start = [one.lag_us for one in seen], [one.p99_from_start_us for one in seen]
    lag = Case("open-lag", "intended to start", "", "µs", lags, note=note)
    beside = []
    for one in found:
        own = p99s["tare load"] if one.from_schedule else from_start
        kind = "intended" if one.from_schedule else "actual"
        reached = median(reached_by[one.name])
        note = f"both from the {kind} start; {one.name} sent {reached:.0f} requests/s"
        name, others = f"open-p99-{one.name}", p99s[one.name]
        beside.append(Case(name, "tare load", one.name, "µs", own, others, note))
    if not found:
        return [lag]
    best = max(beside, key=lambda case: case.ratio)
    return [lag, *beside, replace(best, name="open-p99", note="beside the best of them")]


def allocations(url: str, folder: Path) -> Case:
    """How many more allocations the sending thread makes for a million requests more."""
    library = compiled(folder, "allocations.c", "-shared", "-fPIC")
    counts = []
    for requests in (FEW, FEW + MANY):
        file = folder / "allocations.txt"
        variables = {"LD_PRELOAD": str(library), "ALLOCATIONS": str(file)}
        options = [url, "--users", str(USERS), "--warmup", "0s", "--requests", str(requests)]
        tare_load(options, folder, variables)
        # The first thread that allocates is the main one: it writes the file of samples.
        sending = [int(line.split()[-1]) for line in file.read_text().splitlines()[1:]]
        counts.append(max(sending))
    more = max(0, counts[1] - counts[0])
    note = (
        f"allocations of the sending thread: {counts[0]} in {FEW:,}, {counts[1]} in {FEW + MANY:,}"
    )
    return Case("allocations", "tare load", "", f"in {MANY:,} requests", [more], note=note)


def in_turns(subjects: Mapping[str, Callable[[], float]], turns: int) -> dict[str, list[float]]:
    """What each subject returns, one value a turn, in random order."""
    order = random.Random(turns)
    values: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(turns):
        for name in order.sample([*subjects], len(subjects)):
            values[name].append(subjects[name]())
    return values


def tare_load(
    options: list[str], folder: Path, variables: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Runs tare-load, which records every request, and returns what it says of its target."""
    out = ["--threads", "1", "--out", str(folder / "samples.arrow"), "--json"]
    command = on_cpu(LOAD_CPU, [str(LOAD), "http", *options, *out])
    found = json.loads(output(command, variables))["targets"][0]
    if found["errors"]:
        raise SystemExit(f"{' '.join(command)}: {found['errors_by_kind']}")
    return dict(found)


@dataclass(frozen=True)
class Seen:
    """What a file of samples shows of an open loop, in µs."""

    lag_us: float
    p99_us: float
    p99_from_start_us: float


def of_samples(file: Path) -> Seen:
    """Mean lag from intended to actual start, and p99 from each of them to the end."""
    import numpy as np
    import pyarrow as pa

    table = pa.ipc.open_stream(file.read_bytes()).read_all()
    intended, start, duration = (
        table[name].to_numpy() for name in ("intended_ns", "start_ns", "duration_ns")
    )
    lag = (start - intended) / 1e3
    p99, p99_from_start = np.quantile([lag + duration / 1e3, duration / 1e3], 0.99, axis=1)
    return Seen(float(lag.mean()), float(p99), float(p99_from_start))


def output(command: list[str], variables: Mapping[str, str] | None = None) -> str:
    """What a command prints; one that fails ends the bench."""
    environment = os.environ | (variables or {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def compiled(folder: Path, source: str, *options: str) -> Path:
    """What the C compiler makes of a source of this folder."""
    target = folder / source.removesuffix(".c")
    subprocess.run(["cc", "-O2", HERE / source, "-o", target, *options], check=True)
    return target


@contextmanager
def null_server(folder: Path) -> Iterator[str]:
    """The least server, on a free port."""
    program = compiled(folder, "null_server.c")
    port = free_port("127.0.0.1")
    with subprocess.Popen(on_cpu(SERVICE_CPU, [str(program), str(port)])) as process:
        try:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
