# SPDX-License-Identifier: Apache-2.0
"""Events without a pause, many times what a ring holds: kept, lost, compressed, at what rate."""

import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from bench.cases import Case
from bench.log.build import build_program
from bench.log.calls_in_bursts import COLLECTOR_CPU, PROGRAM_CPU
from bench.log.collected import LOG, Collected
from bench.log.moobench_tables import share
from bench.turns import Turner, on_cpu

EVENTS = 40_000_000
MILLION = 1_000_000
WORKERS = (0, 1, 2)
BLOCK, SETTLED = 4096, 1.0
"""Bytes that are more than a reading of the clocks, and seconds without any."""


def cases(folder: Path, repetitions: int, *, quick: bool) -> list[Case]:
    """Both policies, both traces, and, unless `quick`, the curve over workers."""
    calls, trace = str(build_program(folder, "calls.c")), str(build_program(folder, "trace.c"))
    found = []
    for policy, words in (("wait", [calls, "tare", "wait"]), ("drop", [calls, "tare"])):
        runs = [_run(folder / f"{policy}-{run}", words) for run in range(repetitions)]
        rates = [EVENTS / MILLION / seconds for seconds, _ in runs]
        kept = [report["events"] / EVENTS for _, report in runs]
        note = f"at least {share(min(kept))}"
        found += [
            Case(f"sustained-{policy}", f"tare, {policy}", "", "million events/s", rates),
            Case(f"sustained-{policy}-kept", f"tare, {policy}", "", "of all", kept, note=note),
        ]
    for kind in ("calls", "random"):
        for workers in WORKERS[:1] if quick else WORKERS:
            options = ("--workers", str(workers))
            runs = [
                _run(folder / f"{kind}-{workers}-{run}", [trace, kind], options)
                for run in range(repetitions)
            ]
            suffix = f"-workers-{workers}" if workers else ""
            found += _drained(kind, suffix, runs)
        if not quick:
            found += _recorded(folder, [trace, kind], repetitions)
    return found


def _recorded(folder: Path, command: list[str], repetitions: int) -> list[Case]:
    """The curve over workers where they have all CPUs, since the program has logged before: what
    a collector makes of a ring that has all events."""
    rates: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    for run in range(repetitions):
        for workers in WORKERS:
            name = folder / f"recorded-{command[-1]}-{workers}-{run}"
            rates[workers].append(EVENTS / MILLION / _late(name, command, workers))
    return [
        Case(
            f"recorded-{command[-1]}-workers-{workers}",
            f"collector, {command[-1]}, recorded, workers {workers}",
            "collector alone" if workers else "",
            "million events/s",
            values,
            rates[0] if workers else (),
        )
        for workers, values in rates.items()
    ]


def _late(name: Path, command: list[str], workers: int) -> float:
    """Seconds until a collector that comes late has written what the program has logged."""
    socket, file = name.with_suffix(".socket"), name.with_suffix(".log")
    variables = {"TARE_LOG": str(socket), "TARE_LOG_RING": "1G"}
    with ExitStack() as stack:
        Turner(command, variables, None, stack).turn(EVENTS)
        collect = [LOG, "collect", "--socket", socket, "--out", file, "--workers", str(workers)]
        begin = time.monotonic()
        with subprocess.Popen([str(word) for word in collect]) as collector:
            end, size = begin, 0
            while not size or time.monotonic() - end < SETTLED:
                time.sleep(0.002)
                now = file.stat().st_size if file.exists() else 0
                if now - size > BLOCK:
                    end, size = time.monotonic(), now
            collector.send_signal(signal.SIGINT)
    found = Collected(name).kept(EVENTS)
    if found != EVENTS:
        raise SystemExit(f"{name}: {EVENTS} logged, {found} kept")
    return end - begin


def _drained(kind: str, suffix: str, runs: list[tuple[float, dict[str, int]]]) -> list[Case]:
    """The rate at which a trace came into the file, by CPU time too, and its size."""
    subject = f"collector, {kind}{suffix.replace('-', ' ')}"
    rates = [report["events"] / MILLION / seconds for seconds, report in runs]
    by_cpu = [1_000 * report["events"] / report["collector_cpu_ns"] for _, report in runs]
    sizes = [report["bytes_written"] / report["events"] for _, report in runs]
    return [
        Case(f"drained-{kind}{suffix}", subject, "", "million events/s", rates),
        Case(f"drained-{kind}{suffix}-cpu", subject, "", "million events/s of CPU time", by_cpu),
        Case(f"drained-{kind}{suffix}-size", subject, "", "bytes an event", sizes),
    ]


def _run(
    name: Path, command: list[str], options: tuple[str, ...] = ()
) -> tuple[float, dict[str, int]]:
    """Seconds that so many events took the program, and what its collector counted; `events` are
    those in the file."""
    collected = Collected(name, options)
    with ExitStack() as stack:
        words = collected.around(on_cpu(PROGRAM_CPU, command))
        seconds = Turner(words, {}, COLLECTOR_CPU, stack).turn(EVENTS) * EVENTS / 1e9
    return seconds, collected.counters() | {"events": collected.kept(EVENTS)}
