# SPDX-License-Identifier: Apache-2.0
"""`tare spans receive` next to other receivers of spans, each on one CPU, in turns."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cases import Case, publish
from bench.link.services import children_cpu_seconds
from bench.load.programs import LOAD, LOAD_CPU, in_turns
from bench.spans import collectors
from bench.spans.collectors import Collector, Running
from bench.spans.payload import SPANS, batch, framed
from bench.turns import on_cpu

USERS = 4
RATE = 50_000
GRPC = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTOCOLS = {
    "grpc": [
        *("--http", "2", "--connections", str(USERS)),
        *("--header", "content-type: application/grpc", "--header", "te: trailers"),
    ],
    "http": ["--header", "content-type: application/x-protobuf"],
}
LOADS = {
    "": ["--mode", "closed"],
    "-50k": ["--mode", "constant", "--rate", str(RATE / SPANS)],
}


@dataclass(frozen=True)
class Turn:
    """What became of the spans that a collector had acknowledged."""

    acknowledged: int
    stored: int
    rate: float
    """Stored spans/s of the load."""
    cpu_us: float
    """Of the collector, per stored span."""
    sender: float
    """Share of a CPU that the sender used."""

    @property
    def lost(self) -> float:
        """Share of the acknowledged spans."""
        return 1 - self.stored / self.acknowledged


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    turns, seconds = (2, 1) if quick else (10, 3)
    with TemporaryDirectory() as name:
        cases = [*measured(Path(name), turns, seconds)]
    left_out = [f"- not measured: {name}: is not installed" for name in collectors.absent()]
    about = (
        f"{turns} turns of {seconds} s in random order, each with a fresh start; the receiver has"
        f" one CPU, the sender the other. The sender is `tare load` on {USERS} connections: back to"
        f" back, or {RATE:,} spans/s where the name ends in 50k. Each request is the same batch of"
        f" {SPANS} spans of 8 services, 10 attributes each, {len(batch()):,} bytes. Rates and CPU"
        " time are of the spans that are stored: rows or spans in the file, or what Jaeger's"
        " metrics count as saved in memory. Lost: the share of the acknowledged spans that are not"
        " stored. Jaeger has its default settings, and the Collector a pipeline from OTLP to a file"
        " of JSON without a processor; both store the attributes, which Tare skips. The same trace"
        " IDs come again and again, which spares Jaeger the creation of traces."
    )
    command = f"{'BENCH=quick ' * quick}make bench-spans"
    return publish("spans", cases, command, about, "\n".join(left_out))


def measured(folder: Path, turns: int, seconds: int) -> Iterator[Case]:
    """The cases of each protocol and load."""
    message = batch()
    bodies = {"grpc": framed(message), "http": message}
    found = collectors.found()
    for protocol, options in PROTOCOLS.items():
        body = folder / protocol
        body.write_bytes(bodies[protocol])
        for load, mode in LOADS.items():
            words = [*options, "--body", str(body), *mode, "--duration", f"{seconds}s"]
            subjects = {
                collector.name: partial(turn, collector, folder, protocol, words)
                for collector in found
            }
            of = in_turns(subjects, turns)
            yield from cases(f"{protocol}{load}", of, has_rate=not load)


def turn(collector: Collector, folder: Path, protocol: str, words: Sequence[str]) -> Turn:
    """Sends to a fresh collector, and counts what it has stored."""
    with collector.running(folder) as running:
        before = children_cpu_seconds()
        answers, duration = send(folder, collector, running, protocol, words)
        sender = (children_cpu_seconds() - before) / duration
    if not answers or not running.stored:
        raise SystemExit(f"{collector.name}, {protocol}: {answers} answers, {running.stored} spans")
    return Turn(
        acknowledged=SPANS * answers,
        stored=running.stored,
        rate=running.stored / duration,
        cpu_us=1e6 * running.cpu_s / running.stored,
        sender=sender,
    )


def send(
    folder: Path, collector: Collector, running: Running, protocol: str, words: Sequence[str]
) -> tuple[int, float]:
    """How many requests were acknowledged in whole, and the seconds of the load."""
    expected = folder / "answer"
    is_grpc = protocol == "grpc"
    expected.write_bytes(framed(collector.answer) if is_grpc else collector.answer)
    url = f"http://{running.grpc}{GRPC}" if is_grpc else f"http://{running.http}/v1/traces"
    load = [str(LOAD), "http", url, *words, "--users", str(USERS), "--expect-body", str(expected)]
    command = on_cpu(LOAD_CPU, [*load, "--warmup", "0s", "--json"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return answers_of(done.stdout)
    except (ValueError, LookupError) as error:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-500:]}") from error


def answers_of(output: str) -> tuple[int, float]:
    """The successful requests that tare-load printed as JSON, and the seconds that it sent."""
    found = json.loads(output)["targets"][0]
    return found["requests"] - found["errors"], found["duration_s"]


def cases(name: str, of: Mapping[str, Sequence[Turn]], *, has_rate: bool) -> Iterator[Case]:
    """Tare's turns, alone and next to those of each peer."""
    if has_rate:
        rates = {who: [result.rate for result in turns] for who, turns in of.items()}
        yield from beside(name, "spans/s", rates)
        sender = [result.sender for result in of["tare"]]
        yield Case(f"{name}-sender", "tare load", "", "of a CPU", sender)
    for who, turns in of.items():
        suffix = "" if who == "tare" else f"-{who}"
        yield Case(f"{name}-lost{suffix}", who, "", "of all", [result.lost for result in turns])
    cpu = {who: [result.cpu_us for result in turns] for who, turns in of.items()}
    yield from beside(f"{name}-cpu", "µs of CPU a span", cpu)


def beside(name: str, unit: str, values: Mapping[str, Sequence[float]]) -> Iterator[Case]:
    """Tare's values alone, which have the bar, and next to each peer's."""
    own = values["tare"]
    yield Case(name, "tare", "", unit, own)
    for peer, theirs in values.items():
        if peer != "tare":
            yield Case(f"{name}-{peer}", "tare", peer, unit, own, theirs)
