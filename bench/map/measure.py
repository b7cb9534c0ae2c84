# SPDX-License-Identifier: Apache-2.0
"""What tare map costs, and what it finds, by each method: the experiments of Tsubouchi et al.,
"Low Overhead TCP/UDP Socket-based Tracing for Discovering Network Services Dependencies", and the
cost of many sockets and edges."""

import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cases import Case, publish
from bench.map.cells import METHODS, UNTRACED, Cell, Measured, Run, Setup
from bench.map.load import Load
from bench.map.network import network
from bench.map.peers import PEERS
from bench.map.series import Failed, Series

RATE_STEP = 5_000
REACHED = 0.98
"""Of the rate that was asked for: then it counts as reached."""
SERVICES_RATE = 10_000
SOCKETS_A_PROCESS = 12_500
CURVES_RATE = 1_000
KINDS = ("short-tcp", "persistent-tcp", "udp")
FIGURES = (*KINDS, "services")
CURVES = ("sockets", "edges")


@dataclass(frozen=True)
class Plan:
    """What is measured, and for how long."""

    limit_s: float
    """All of it ends by then; measurements without time are left out, the last ones first."""
    judged_s: float
    """The window of a measurement that a bar judges."""
    other_s: float
    curve_s: float
    rates: tuple[int, ...]
    """Without a second one, the highest that the machine reaches is not looked for."""
    services: tuple[int, ...]
    sockets: tuple[int, ...]
    edges: tuple[int, ...]
    compared: tuple[str, ...]
    """Figures that have the other methods, too."""


FULL = Plan(
    limit_s=45 * 60,
    judged_s=30,
    other_s=5,
    curve_s=10,
    rates=(5_000, 20_000, 35_000),
    services=(200, 600, 1_000),
    sockets=(1, 1_000, 10_000, 100_000),
    edges=(10, 1_000, 10_000),
    compared=FIGURES,
)
QUICK = Plan(
    limit_s=5 * 60,
    judged_s=3,
    other_s=2,
    curve_s=2,
    rates=(5_000,),
    services=(1_000,),
    sockets=(1_000,),
    edges=(1_000,),
    compared=FIGURES[:1],
)


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    if os.geteuid():
        raise SystemExit("bench/map: root is needed for network namespaces and BPF")
    # What was started and made is removed then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = QUICK if quick else FULL
    with TemporaryDirectory() as name, network() as ends:
        series = Series(Setup(ends, Path(name), plan.judged_s), plan.limit_s)
        for cell in [*figures(plan, series), *curves(plan)]:
            of_cell(plan, series, cell)
        for kind, peer in product(KINDS[:2], PEERS):
            cell = Cell(kind, plan.rates[0], of_kind(kind, plan.rates[0]))
            series.measure(Run(cell, peer), plan.other_s)
    results = series.results
    top = {
        kind: max((measured.run.cell.x for measured in of(results, kind)), default=0)
        for kind in KINDS
    }
    highest = ", ".join(f"{kind} {rate:,}" for kind, rate in top.items())
    about = (
        f"Messages of 64 bytes and their echo between two network namespaces, server and client on"
        f" a CPU each; all edges are printed every second. Both ends are traced. Windows of"
        f" {plan.judged_s} s for `bundle` in the figures, which the bars judge, {plan.curve_s} s"
        f" for sockets and edges, and {plan.other_s} s for all else, so that the series takes at"
        f" most {plan.limit_s / 60:.0f} minutes; the order is random within a cell. The tracer"
        " starts before the load and, separately, after it; for sockets and edges only after it,"
        " for other methods and programs only before it. Highest round trips/s here:"
        f" {highest} (asked: {plan.rates[-1]:,}). Persistent TCP has five round trips/s a"
        " connection, UDP a new socket for each. Services share"
        f" {SERVICES_RATE:,} short connections/s, sockets and edges {CURVES_RATE:,} round trips/s;"
        " an edge is counted at each end. Process: CPU time of the program, in % of a core; total:"
        " with BPF programs that run outside of it, which for programs other than tare-map are"
        " not counted. Programs: run time of these per round trip at one end. Latency: what the"
        " client saw, median. Edges, connections and bytes are in % of what the load generator"
        " did; lost: updates that the map itself reports as missing. Cases are over all cells of a"
        " figure with `--method bundle`; total is at the highest rate."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-map"
    more = "\n".join([table(results), "", *missing(series.failures)])
    return publish("map", [*cases(results, series.failures)], command, about, more)


def figures(plan: Plan, series: Series) -> Iterator[Cell]:
    """Figures 3 and 4 of the paper."""
    for kind in KINDS:
        highest = plan.rates[-1]
        if len(plan.rates) > 1:
            highest = highest_rate(plan, series, kind)
        for rate in (*(rate for rate in plan.rates if rate < highest), highest):
            yield Cell(kind, rate, of_kind(kind, rate))
    for services in plan.services:
        yield Cell("services", services, Load("tcp", SERVICES_RATE, services))


def curves(plan: Plan) -> Iterator[Cell]:
    """The cost of what is open, at a low rate."""
    for sockets in plan.sockets:
        processes = max(1, sockets // SOCKETS_A_PROCESS)
        services = 4 * processes if sockets >= 100 else 1
        yield Cell("sockets", sockets, Load("tcp", CURVES_RATE, services, sockets, processes))
    for edges in plan.edges:
        yield Cell("edges", edges, Load("tcp", CURVES_RATE, edges // 2, edges // 2))


def of_kind(kind: str, rate: int) -> Load:
    """As in the paper."""
    if kind == "persistent-tcp":
        return Load("tcp", rate, connections=rate // 5)
    return Load("udp" if kind == "udp" else "tcp", rate)


def highest_rate(plan: Plan, series: Series, kind: str) -> int:
    """The highest that this machine reaches without a tracer, in steps; if a measurement has no
    result, the next step counts."""
    for rate in range(plan.rates[-1], RATE_STEP, -RATE_STEP):
        run = Run(Cell(kind, rate, of_kind(kind, rate)))
        found = series.attempt(run, plan.other_s)
        if found and found.done.rate >= REACHED * rate and not found.done.errors:
            return rate
    return RATE_STEP


def of_cell(plan: Plan, series: Series, cell: Cell) -> None:
    """Without a tracer and by each method, in random order. Only the default method is judged, in
    figures with both orders of tracer and load."""
    subject, *others = METHODS
    windows = {Run(cell): plan.other_s}
    if cell.figure in FIGURES:
        windows |= {Run(cell, subject, first): plan.judged_s for first in (True, False)}
        if cell.figure in plan.compared:
            windows |= {Run(cell, method, tracer_first=True): plan.other_s for method in others}
    else:
        windows |= {Run(cell, subject): plan.curve_s}
    for run in random.Random(cell.x).sample([*windows], len(windows)):
        series.measure(run, windows[run])


def when(tracer_first: bool) -> str:
    """The tracer's start."""
    return "before" if tracer_first else "after"


def of(results: Sequence[Measured], figure: str, method: str = METHODS[0]) -> list[Measured]:
    """One line of a figure."""
    return [
        measured
        for measured in results
        if (measured.run.cell.figure, measured.run.method) == (figure, method)
    ]


def cases(results: Sequence[Measured], failures: Sequence[Failed]) -> Iterator[Case]:
    """Of the default method, a value for each cell."""
    subject = METHODS[0]
    judged = [failure for failure in failures if is_judged(failure.run)]
    yield Case("runs-failed", subject, "", "runs", [len(judged)])
    for figure in (*FIGURES, *CURVES):
        found = of(results, figure)
        if not found:
            continue
        alone = {
            measured.run.cell.x: measured.done.latency_us
            for measured in of(results, figure, UNTRACED)
        }
        top = max(measured.run.cell.x for measured in found)
        core = "% of a core"
        yield Case(f"{figure}-process", subject, "", core, [measured.process for measured in found])
        at_top = [measured.total for measured in found if measured.run.cell.x == top]
        yield Case(f"{figure}-total", subject, "", core, at_top)
        programs = [measured.round_trip_us for measured in found]
        yield Case(f"{figure}-programs", subject, "", "µs a round trip", programs)
        pairs = [measured for measured in found if measured.run.cell.x in alone]
        if pairs:
            latencies = [measured.done.latency_us for measured in pairs]
            without = [alone[measured.run.cell.x] for measured in pairs]
            yield Case(f"{figure}-latency", subject, "no tracer", "µs", latencies, without)
        shares = [measured.shares for measured in found if measured.shares]
        kinds = {
            "edges": [share.edges for share in shares],
            "connections": [n for share in shares if (n := share.connections) is not None],
            "bytes": [n for share in shares if (n := share.bytes) is not None],
        }
        for kind, values in kinds.items():
            if values:
                yield Case(f"{figure}-{kind}-found", subject, "", "%", values)
        yield Case(f"{figure}-lost", subject, "", "updates", [measured.lost for measured in found])


def is_judged(run: Run) -> bool:
    """Whether bars are about it."""
    return run.cell.figure in FIGURES and run.method == METHODS[0]


def missing(failures: Sequence[Failed]) -> Iterator[str]:
    """A line for each measurement without a result."""
    for failure in failures:
        cell = failure.run.cell
        yield f"- {cell.figure}, {cell.x}, {failure.run.method}: no result: {failure.reason}"


def table(results: Sequence[Measured]) -> str:
    """All cells and methods."""
    lines = [
        "| figure | x | method | tracer starts | round trips/s | failed | process, % | total, % |"
        " programs, µs | latency, µs | edges, % | connections, % | bytes, % | lost |",
        f"|{'---|' * 14}",
    ]
    order = [UNTRACED, *METHODS, *PEERS]
    key = [*FIGURES, *CURVES]
    for measured in sorted(
        results,
        key=lambda measured: (
            key.index(measured.run.cell.figure),
            measured.run.cell.x,
            order.index(measured.run.method),
            not measured.run.tracer_first,
        ),
    ):
        cells = [measured.run.cell.figure, f"{measured.run.cell.x}", measured.run.method]
        measures = [
            f"{measured.process:.3g}",
            f"{measured.total:.3g}",
            f"{measured.round_trip_us:.3g}",
        ]
        rate, latency = f"{measured.done.rate:.0f}", f"{measured.done.latency_us:.4g}"
        errors = f"{measured.done.errors}"
        if measured.shares is None:
            process = measures[0] if measured.run.method in PEERS else "-"
            cells += ["-", rate, errors, process, "-", "-", latency, *["-"] * 4]
        else:
            shares = [measured.shares.edges, measured.shares.connections, measured.shares.bytes]
            found = ["-" if share is None else f"{share:.6g}" for share in shares]
            cells += [when(measured.run.tracer_first), rate, errors, *measures, latency, *found]
            cells.append(f"{measured.lost}")
        lines.append(f"| {' | '.join(cells)} |")
    bundled = [
        f"{1 - measured.run.cell.x / SERVICES_RATE:.2f} ({measured.run.cell.x})"
        for measured in of(results, "services", UNTRACED)
    ]
    rate = (
        f"Bundling rate R = 1 - B/T of the services, T connections a second: {', '.join(bundled)}."
    )
    return "\n".join([*lines, "", rate])
