# SPDX-License-Identifier: Apache-2.0
"""One measurement: a load, and a method of tare map beside it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.map.completeness import Shares, expected, shares
from bench.map.load import CellError, Done, Load, Running, closed, sending, serving
from bench.map.network import Network
from bench.map.peers import PEERS, watching
from bench.map.tracing import Tracing, tracing

METHODS = ("bundle", "aggregate", "stream", "poll")
UNTRACED = "none"
LEAD_S = 2
"""Between the start of load and tracer, and the window: a line of each is printed before."""
MARGIN_S = 1
START_S = 5
"""What the start of a tracer may take of the time of a load that runs."""
LIMIT_S = 120
"""Programs end by themselves so long after the window."""


@dataclass(frozen=True)
class Cell:
    """A point of a figure."""

    figure: str
    x: int
    load: Load


@dataclass(frozen=True)
class Setup:
    """What all runs share."""

    network: Network
    folder: Path
    seconds: float
    """Length of the window."""


@dataclass(frozen=True)
class Run:
    """A cell by a method."""

    cell: Cell
    method: str = UNTRACED
    tracer_first: bool = False


@dataclass(frozen=True)
class Measured:
    """Of a run; without a tracer there is only a latency."""

    run: Run
    done: Done
    process: float = 0.0
    """% of a core."""
    programs: float = 0.0
    """% of a core, of BPF programs that are not in `process`, at both ends."""
    lost: int = 0
    shares: Shares | None = None

    @property
    def total(self) -> float:
        """% of a core."""
        return self.process + self.programs

    @property
    def round_trip_us(self) -> float:
        """Run time of BPF programs a round trip, at one end."""
        return 1e6 * self.programs / 100 / 2 / self.done.rate


def measured(setup: Setup, run: Run) -> Measured:
    """Starts the tracer before the load, after it, or not at all."""
    network, load, folder = setup.network, run.cell.load, setup.folder
    limit, sent = setup.seconds + LIMIT_S, LEAD_S + setup.seconds + MARGIN_S
    with serving(network, load, folder, limit):
        if run.method == UNTRACED:
            with sending(network, load, folder, setup.seconds) as running:
                return Measured(run, finished(setup, running))
        if run.method in PEERS:
            with (
                watching(run.method, network, folder) as peer,
                sending(network, load, folder, sent) as running,
            ):
                time.sleep(LEAD_S)
                share = peer.share(setup.seconds)
                running.check()
                done = finished(setup, running)
                found = peer.found(expected(done.services))
                return Measured(run, done, 100 * share, shares=found)
        if run.tracer_first:
            with (
                tracing(run.method, folder, limit) as tracer,
                sending(network, load, folder, sent) as running,
            ):
                return window(setup, run, tracer, running)
        with (
            sending(network, load, folder, sent + START_S) as running,
            tracing(run.method, folder, limit) as tracer,
        ):
            return window(setup, run, tracer, running)


def window(setup: Setup, run: Run, tracer: Tracing, running: Running) -> Measured:
    """Measures while both run; counts when all connections have ended."""
    time.sleep(LEAD_S)
    begin = tracer.now()
    time.sleep(setup.seconds)
    end = tracer.now()
    running.check()
    done = finished(setup, running)
    last = tracer.finish()
    cost = tracer.cost(begin, end)
    return Measured(
        run,
        done,
        100 * cost.process,
        100 * cost.programs,
        sum(last["completeness"].values()) + last["missed_intervals"],
        known(last["edges"], setup.network, run, done),
    )


def finished(setup: Setup, running: Running) -> Done:
    """When all connections have ended."""
    done = running.result(setup.seconds + LIMIT_S)
    closed(setup.network)
    if not done.rate:
        raise CellError("the load had no answer")
    return done


def known(edges: Sequence[Any], network: Network, run: Run, done: Done) -> Shares:
    """A tracer that started late can have all edges and the connections that stayed."""
    namespaces = (network.server.number, network.client.number)
    own = [edge for edge in edges if edge["netns"] in namespaces]
    found = shares(own, expected(done.services))
    if run.tracer_first:
        return found
    kept = found.connections if run.cell.load.connections else None
    return replace(found, bytes=None, connections=kept)
