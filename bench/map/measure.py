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
from bench.map.first_screen import first_screens
from bench.map.load import CellError, Load
from bench.map.network import network
from bench.map.peers import OF_UDP, PEERS
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
    screens: int
    """Starts of the live view."""


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
    screens=20,
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
    screens=5,
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
        for kind, peer in product(KINDS, PEERS):
            if kind != "udp" or peer in OF_UDP:
                cell = Cell(kind, plan.rates[0], of_kind(kind, plan.rates[0]))
                series.measure(Run(cell, peer), plan.other_s)
        failures = [*missing(series.failures)]
        first = []
        try:
            screens = first_screens(plan.screens)
            first.append(Case("first-screen", METHODS[0], "", "s", screens))
        except CellError as error:
            failures.append(f"- first screen: no result: {error}")
    results = series.results
    top = {kind: highest(of(results, kind)) for kind in KINDS}
    rates = ", ".join(
        f"{kind} {max((o.done.rate for o in one), default=0):,.0f}" for kind, one in top.items()
    )
    about = (
        f"Messages of 64 bytes and their echo between two network namespaces, server and client on"
        f" a CPU each; all edges are printed every second. Both ends are traced. Windows of"
        f" {plan.judged_s} s for `bundle` in the figures, which the bars judge, {plan.curve_s} s"
        f" for sockets and edges, and {plan.other_s} s for all else, so that the series takes at"
        f" most {plan.limit_s / 60:.0f} minutes; the order is random within a cell.\n\nThe tracer"
        " starts before the load and, separately, after it; for sockets and edges only after it,"
        " for other methods and programs only before it. Highest round trips/s here:"
        f" {rates} (asked: {plan.rates[-1]:,}). Persistent TCP has five round trips/s a"
        " connection, UDP a new socket for each. Services share"
        f" {SERVICES_RATE:,} short connections/s, sockets and edges {CURVES_RATE:,} round trips/s;"
        " an edge is counted at each end.\n\nProcess: CPU time of the program, in % of a core;"
        " total: with BPF programs that run outside of it, which for programs other than tare-map"
        " are not counted. Programs: run time of these per round trip at one end. Latency: what the"
        " client saw, median. Edges, connections and bytes are in % of what the load generator"
        " did, for other programs, too: ss lists sockets once a second, conntrack and bpftrace"
        " print each connection that begins; lost: updates that the map itself reports as missing."
        "\n\nCases are over all cells of a figure with `--method bundle`; total is in the cell with"
        " the highest rate that was measured. First screen: from the start of `tare map` on a"
        " terminal until it shows a connection that was open before."
        " [Why bars are not reached](decisions/0200-bars-of-the-map-that-two-cpus-do-not-reach.md)."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-map"
    more = "\n".join([table(results), "", *failures])
    return publish("map", [*cases(results, series.failures), *first], command, about, more)


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
    return [one for one in results if (one.run.cell.figure, one.run.method) == (figure, method)]


def highest(found: Sequence[Measured]) -> list[Measured]:
    """Of the cell with the highest rate that was measured, which may not be the highest rate that
    was asked for."""
    top = max(found, key=lambda one: one.done.rate, default=None)
    return [one for one in found if top and one.run.cell == top.run.cell]


def cases(results: Sequence[Measured], failures: Sequence[Failed]) -> Iterator[Case]:
    """Of the default method, a value for each cell."""
    subject = METHODS[0]
    judged = [one for one in failures if is_judged(one.run)]
    yield Case("runs-failed", subject, "", "runs", [len(judged)])
    for figure in (*FIGURES, *CURVES):
        found = of(results, figure)
        if not found:
            continue
        alone = {one.run.cell.x: one.done.latency_us for one in of(results, figure, UNTRACED)}
        core = "% of a core"
        yield Case(f"{figure}-process", subject, "", core, [one.process for one in found])
        at_top = highest(found) if figure in KINDS else most(found)
        yield Case(f"{figure}-total", subject, "", core, [one.total for one in at_top])
        programs = [one.round_trip_us for one in found]
        yield Case(f"{figure}-programs", subject, "", "µs a round trip", programs)
        pairs = [one for one in found if one.run.cell.x in alone]
        if pairs:
            latencies = [one.done.latency_us for one in pairs]
            without = [alone[one.run.cell.x] for one in pairs]
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


def most(found: Sequence[Measured]) -> list[Measured]:
    """Of the cell with the most services, sockets or edges."""
    top = max(one.run.cell.x for one in found)
    return [one for one in found if one.run.cell.x == top]


def is_judged(run: Run) -> bool:
    """Whether bars are about it."""
    return run.cell.figure in FIGURES and run.method == METHODS[0]


def missing(failures: Sequence[Failed]) -> Iterator[str]:
    """A line for each measurement without a result."""
    for one in failures:
        cell = one.run.cell
        yield f"- {cell.figure}, {cell.x}, {one.run.method}: no result: {one.reason}"


def table(results: Sequence[Measured]) -> str:
    """All cells and methods."""
    lines = [
        "| figure | x | method | tracer starts | round trips/s | failed | process, % | total, % |"
        " programs, µs | latency, µs | edges, % | connections, % | bytes, % | lost |",
        f"|{'---|' * 14}",
    ]
    order = [UNTRACED, *METHODS, *PEERS]
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
        shares = (one.shares.edges, one.shares.connections, one.shares.bytes) if one.shares else ()
        found = ["-" if share is None else f"{share:.6g}" for share in shares] or ["-"] * 3
        if one.run.method in METHODS:
            cells += [when(one.run.tracer_first), rate, errors, *measures, latency, *found]
            cells.append(f"{one.lost}")
        else:
            process = measures[0] if one.run.method in PEERS else "-"
            cells += ["-", rate, errors, process, "-", "-", latency, *found, "-"]
        lines.append(f"| {' | '.join(cells)} |")
    bundled = [
        f"{1 - one.run.cell.x / SERVICES_RATE:.2f} ({one.run.cell.x})"
        for one in of(results, "services", UNTRACED)
    ]
    rate = (
        f"Bundling rate R = 1 - B/T of the services, T connections a second: {', '.join(bundled)}."
    )
    return "\n".join([*lines, "", rate])
