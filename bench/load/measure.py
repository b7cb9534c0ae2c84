# SPDX-License-Identifier: Apache-2.0
"""tare-load beside wrk in a closed loop, and beside open-loop generators at half of capacity."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from bench.cases import Case, publish
from bench.load import peers, redis
from bench.load.programs import LOAD, LOAD_CPU, SERVICE_CPU, Turns, in_turns, output, tare_load
from bench.nginx import Nginx
from bench.turns import on_cpu

from tare.lab.environments.ports import free_port

HERE = Path(__file__).parent
USERS = 16
MANY = 1_000_000
FEW = 100_000


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
        with redis.serving(turns.folder) as server:
            cases += [
                redis.closed("tcp-redis", server.port, turns, 1),
                redis.closed("tcp-redis-16", server.port, turns, 16),
            ]
    about = (
        f"Medians of {turns.pairs} turns of {turns.seconds} s in random order, of closed loops of"
        f" {turns.pairs * turns.seconds} turns of 1 s; one thread on one CPU, the server on the"
        f" other; {USERS} connections, 1 where the name ends so."
        f" Beside redis-benchmark a turn is {redis.REQUESTS:,} requests on {redis.USERS}"
        " connections, each with 16 under way where the name ends so."
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
    reached_by: dict[str, list[float]] = {peer.name: [] for peer in found}

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

    p99s = in_turns({"tare load": ours} | {peer.name: other(peer) for peer in found}, turns.pairs)
    note = f"{rate} requests/s, half of the capacity"
    from_start = [figures.p99_from_start_us for figures in seen]
    lags = [
        Case(
            "open-lag",
            "intended to start",
            "",
            "µs",
            [figures.lag_us for figures in seen],
            note=note,
        ),
        Case(
            "open-lag-own",
            "free connection to start",
            "",
            "µs",
            [figures.own_lag_us for figures in seen],
            note="the rest of open-lag waited for the server: all connections were in use",
        ),
    ]
    beside = []
    for peer in found:
        own = p99s["tare load"] if peer.from_schedule else from_start
        kind = "intended" if peer.from_schedule else "actual"
        reached = median(reached_by[peer.name])
        note = f"both from the {kind} start; {peer.name} sent {reached:.0f} requests/s"
        name, others = f"open-p99-{peer.name}", p99s[peer.name]
        beside.append(Case(name, "tare load", peer.name, "µs", own, others, note))
    if not found:
        return lags
    best = max(beside, key=lambda case: case.ratio)
    return [*lags, *beside, replace(best, name="open-p99", note="beside the best of them")]


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


@dataclass(frozen=True)
class Seen:
    """What a file of samples shows of an open loop, in µs."""

    lag_us: float
    own_lag_us: float
    p99_us: float
    p99_from_start_us: float


def of_samples(file: Path) -> Seen:
    """Mean lag from intended to actual start, the part of it while a connection was free, and p99
    from each start to the end."""
    import pyarrow as pa

    table = pa.ipc.open_stream(file.read_bytes()).read_all()
    intended, start, duration = (
        table[name].to_numpy() for name in ("intended_ns", "start_ns", "duration_ns")
    )
    lag = (start - intended) / 1e3
    p99, p99_from_start = np.quantile([lag + duration / 1e3, duration / 1e3], 0.99, axis=1)
    own = own_lag(intended, start, duration) / 1e3
    return Seen(float(lag.mean()), float(own.mean()), float(p99), float(p99_from_start))


def own_lag(
    intended: npt.NDArray[np.int64], start: npt.NDArray[np.int64], duration: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How long each request waited while one of `USERS` connections was free, in ns, in order of
    their starts."""
    order = np.argsort(start, kind="stable")
    ends = np.sort(start + duration)
    intended = intended[order]
    free = np.concatenate([intended[:USERS], ends])[: len(start)]
    waited: npt.NDArray[np.int64] = start[order] - np.maximum(intended, free)
    return waited


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
