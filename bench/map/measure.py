# SPDX-License-Identifier: Apache-2.0
"""What tare map costs, and what it finds, by each method: the experiments of Tsubouchi et al.,
"Low Overhead TCP/UDP Socket-based Tracing for Discovering Network Services Dependencies", and the
cost of many sockets and edges."""

import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cases import Case, publish
from bench.map.cells import METHODS, UNTRACED, Cell, Measured, Run, Setup, measured
from bench.map.load import Load
from bench.map.network import network

SECONDS, QUICK_SECONDS = 30, 3
RATES = (5_000, 15_000, 25_000, 35_000)
RATE_STEP = 5_000
REACHED = 0.98
"""Of the rate that was asked for: then it counts as reached."""
SERVICES = (200, 400, 600, 800, 1_000)
SERVICES_RATE = 10_000
SOCKETS = (1, 10, 100, 1_000, 10_000, 100_000)
SOCKETS_A_PROCESS = 12_500
EDGES = (10, 100, 1_000, 10_000)
CURVES_RATE = 1_000
KINDS = ("short-tcp", "persistent-tcp", "udp")
FIGURES = (*KINDS, "services")
CURVES = ("sockets", "edges")


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    if os.geteuid():
        raise SystemExit("bench/map: root is needed for network namespaces and BPF")
    # What was started and made is removed then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    seconds = QUICK_SECONDS if quick else SECONDS
    results: list[Measured] = []
    with TemporaryDirectory() as name, network() as ends:
        setup = Setup(ends, Path(name), seconds)
        for cell in [*figures(setup, quick), *curves(quick)]:
            results += of_cell(setup, cell, quick)
    top = {kind: max(one.run.cell.x for one in of(results, kind)) for kind in KINDS}
    highest = ", ".join(f"{kind} {rate:,}" for kind, rate in top.items())
    about = (
        f"Windows of {seconds} s; messages of 64 bytes and their echo between two network"
        " namespaces, server and client on a CPU each; all edges are printed every second. Both"
        " ends are traced. The tracer starts before the load and, separately, after it; for"
        f" sockets and edges only after it. Highest round trips/s here: {highest} (asked:"
        f" {RATES[-1]:,}). Persistent TCP has five round trips/s a connection, UDP a new socket"
        f" for each. Services share {SERVICES_RATE:,} short connections/s, sockets and edges"
        f" {CURVES_RATE:,} round trips/s; an edge is counted at each end. Process: CPU time of"
        " tare-map, in % of a core; total: with BPF programs that run outside of it. Programs:"
        " run time of these per round trip at one end. Latency: what the client saw, median."
        " Edges, connections and bytes are in % of what the load generator did; lost: updates that"
        " the map itself reports as missing. Cases are over all cells of a figure with"
        " `--method bundle`; total is at the highest rate."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-map"
    return publish("map", [*cases(results)], command, about, table(results))


def figures(setup: Setup, quick: bool) -> Iterator[Cell]:
    """Figures 3 and 4 of the paper."""
    for kind in KINDS:
        highest = highest_rate(replace(setup, seconds=QUICK_SECONDS), kind)
        lower = [rate for rate in (RATES[:1] if quick else RATES) if rate < highest]
        for rate in (*lower, highest):
            yield Cell(kind, rate, of_kind(kind, rate))
    for services in (SERVICES[0], SERVICES[-1]) if quick else SERVICES:
        yield Cell("services", services, Load("tcp", SERVICES_RATE, services))


def curves(quick: bool) -> Iterator[Cell]:
    """The cost of what is open, at a low rate."""
    for sockets in (SOCKETS[0], SOCKETS[3], SOCKETS[-1]) if quick else SOCKETS:
        processes = max(1, sockets // SOCKETS_A_PROCESS)
        services = 4 * processes if sockets >= 100 else 1
        yield Cell("sockets", sockets, Load("tcp", CURVES_RATE, services, sockets, processes))
    for edges in (EDGES[0], EDGES[-1]) if quick else EDGES:
        yield Cell("edges", edges, Load("tcp", CURVES_RATE, edges // 2, edges // 2))


def of_kind(kind: str, rate: int) -> Load:
    """As in the paper."""
    if kind == "persistent-tcp":
        return Load("tcp", rate, connections=rate // 5)
    return Load("udp" if kind == "udp" else "tcp", rate)


def highest_rate(setup: Setup, kind: str) -> int:
    """The highest that this machine reaches without a tracer, in steps."""
    for rate in range(RATES[-1], RATE_STEP, -RATE_STEP):
        done = measured(setup, Run(Cell(kind, rate, of_kind(kind, rate)))).done
        if done.rate >= REACHED * rate and not done.errors:
            return rate
    return RATE_STEP


def of_cell(setup: Setup, cell: Cell, quick: bool) -> Iterator[Measured]:
    """Without a tracer and by each method, in random order."""
    runs = [Run(cell), *(run for method in METHODS for run in by_method(cell, method, quick))]
    for run in random.Random(cell.x).sample(runs, len(runs)):
        print(cell.figure, cell.x, run.method, when(run.tracer_first), file=sys.stderr, flush=True)
        yield measured(setup, run)


def by_method(cell: Cell, method: str, quick: bool) -> list[Run]:
    """Both orders where the experiment has both; a quick bench has them only of the subject."""
    is_subject, is_figure = method == METHODS[0], cell.figure in FIGURES
    if quick and not is_subject:
        return [Run(cell, method, tracer_first=True)] if is_figure else []
    return [Run(cell, method, first) for first in ((True, False) if is_figure else (False,))]


def when(tracer_first: bool) -> str:
    """The tracer's start."""
    return "before" if tracer_first else "after"


def of(results: Sequence[Measured], figure: str, method: str = METHODS[0]) -> list[Measured]:
    """One line of a figure."""
    return [one for one in results if (one.run.cell.figure, one.run.method) == (figure, method)]


def cases(results: Sequence[Measured]) -> Iterator[Case]:
    """Of the default method, a value for each cell."""
    subject = METHODS[0]
    for figure in (*FIGURES, *CURVES):
        found = of(results, figure)
        alone = {one.run.cell.x: one.done.latency_us for one in of(results, figure, UNTRACED)}
        top = max(alone)
        core = "% of a core"
        yield Case(f"{figure}-process", subject, "", core, [one.process for one in found])
        at_top = [one.total for one in found if one.run.cell.x == top]
        yield Case(f"{figure}-total", subject, "", core, at_top)
        programs = [one.round_trip_us for one in found]
        yield Case(f"{figure}-programs", subject, "", "µs a round trip", programs)
        latencies = [one.done.latency_us for one in found]
        without = [alone[one.run.cell.x] for one in found]
        yield Case(f"{figure}-latency", subject, "no tracer", "µs", latencies, without)
        shares = [one.shares for one in found if one.shares]
        kinds = {
            "edges": [share.edges for share in shares],
            "connections": [n for share in shares if (n := share.connections) is not None],
            "bytes": [n for share in shares if (n := share.bytes) is not None],
        }
        for kind, values in kinds.items():
            if values:
                yield Case(f"{figure}-{kind}-found", subject, "", "%", values)
        yield Case(f"{figure}-lost", subject, "", "updates", [one.lost for one in found])


def table(results: Sequence[Measured]) -> str:
    """All cells and methods."""
    lines = [
        "| figure | x | method | tracer starts | round trips/s | failed | process, % | total, % |"
        " programs, µs | latency, µs | edges, % | connections, % | bytes, % | lost |",
        f"|{'---|' * 14}",
    ]
    order = [UNTRACED, *METHODS]
    key = [*FIGURES, *CURVES]
    for one in sorted(
        results,
        key=lambda one: (
            key.index(one.run.cell.figure),
            one.run.cell.x,
            order.index(one.run.method),
            not one.run.tracer_first,
        ),
    ):
        cells = [one.run.cell.figure, f"{one.run.cell.x}", one.run.method]
        measures = [f"{one.process:.3g}", f"{one.total:.3g}", f"{one.round_trip_us:.3g}"]
        rate, latency = f"{one.done.rate:.0f}", f"{one.done.latency_us:.4g}"
        errors = f"{one.done.errors}"
        if one.shares is None:
            cells += ["-", rate, errors, *["-"] * 3, latency, *["-"] * 4]
        else:
            shares = [one.shares.edges, one.shares.connections, one.shares.bytes]
            found = ["-" if share is None else f"{share:.6g}" for share in shares]
            cells += [when(one.run.tracer_first), rate, errors, *measures, latency, *found]
            cells.append(f"{one.lost}")
        lines.append(f"| {' | '.join(cells)} |")
    bundled = [
        f"{1 - one.run.cell.x / SERVICES_RATE:.2f} ({one.run.cell.x})"
        for one in of(results, "services", UNTRACED)
    ]
    rate = (
        f"Bundling rate R = 1 - B/T of the services, T connections a second: {', '.join(bundled)}."
    )
    return "\n".join([*lines, "", rate])
