# SPDX-License-Identifier: Apache-2.0
"""Edges that are idle make room for new ones: what they counted stays in the map."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.map.hosts import Host
from tests.map.hosts import Program as Talker
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Edge, Tracing
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

MOST = 16
"""Edges that there is room for."""
METHODS = [["bundle"], ["aggregate"], ["stream", "--events", "all"]]
IDS = [words[0] for words in METHODS]
FIELDS = ("opened", "closed", "bytes_sent", "bytes_received", "packets_sent")


class Lines:
    """A tracer that prints a line per interval, and the last one of them."""

    def __init__(self, most: int, *options: str) -> None:
        command = [native("bin", "tare-map"), "--jsonl", "--interval", "20ms"]
        self.process = subprocess.Popen(
            [*command, "--max-edges", str(most), *options], stdout=subprocess.PIPE, text=True
        )
        self.last: dict[str, Any] = {}
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.last = json.loads(line)

    def stop(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(SECONDS) == 0
        self.thread.join()
        return self.last


@contextmanager
def lines(*options: str, most: int = MOST) -> Iterator[Lines]:
    tracing = Lines(most, *options)
    try:
        wait_for(lambda: tracing.last != {}, "the first line")
        yield tracing
    finally:
        tracing.process.kill()
        tracing.process.wait()
        tracing.thread.join()


def total(edges: list[Edge], field: str) -> int:
    return sum(edge[field] for edge in edges)


def refused(edges: list[Edge]) -> int:
    return sum(edge["failed"].get("ECONNREFUSED", 0) for edge in edges)


def traffic(client: Talker, ports: list[int], datagram_port: int) -> dict[str, int]:
    """Talks to all ports; returns what all edges have together then."""
    for port in ports:
        client.ask("short", SERVER["4"], port, 2, 100)
        client.ask("refused", SERVER["4"], 7)
    client.ask("exchange", "kept", 1000)
    client.ask("datagrams", "connected", SERVER["4"], datagram_port, 5, 10)
    connections, datagrams = 2 * 2 * len(ports), 2 * 5
    return {
        "opened": connections,
        "closed": connections,
        "bytes_sent": connections * 100 + 2 * 1000 + datagrams * 10,
        "bytes_received": connections * 100 + 2 * 1000 + datagrams * 10,
        "packets_sent": connections + 2 + datagrams,
    }


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_idle_edges_leave_and_all_counts_stay(
    hosts: Hosts, program: Program, method: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    ports = [int(server.ask("listen", SERVER["4"])) for _ in range(2 * MOST)]
    datagram_port = int(server.ask("bind", SERVER["4"]))
    # It sees what other programs of this machine do meanwhile, which is in the edges of the other
    # tracer, too.
    with Tracing() as around:
        with lines("--method", *method) as tracing:
            client.ask("open", "kept", SERVER["4"], ports[0])
            sums, rounds = dict.fromkeys(FIELDS, 0), 0
            while tracing.last["completeness"]["removed_edges"] < 4 * MOST:
                for field, number in traffic(client, ports, datagram_port).items():
                    sums[field] += number
                rounds += 1
            client.ask("close", "kept")
            sums["opened"] += 2
            sums["closed"] += 2
            wait_for(lambda: all_closed(hosts))
            found = tracing.stop()
        everything = around.stop()["edges"]
    assert not found["complete"]
    edges = found["edges"]
    # With the edge `other`, and some that connections of other programs keep.
    assert len(edges) <= MOST + MOST // 8 + 1
    assert any(edge["role"] == "other" for edge in edges)
    for field, number in sums.items():
        assert number <= total(edges, field) <= total(everything, field), field
    assert len(ports) * rounds <= refused(edges) <= refused(everything)
    losses = found["completeness"]
    assert losses["lost_updates"] == losses["lost_errors"] == losses["lost_events"] == 0


def test_errors_of_more_edges_than_the_kernel_has_room_for_are_counted(
    hosts: Hosts, program: Program
) -> None:
    """The kernel's map of errors is emptied when it is half full."""
    client = hosts[0].start(program("browser"))
    with lines("--method", "bundle", most=100_000) as tracing:
        for first in range(1_000, 7_000, 500):
            client.ask("refused_ports", SERVER["4"], first, 500)
            # The errors of the last connects may be in the next line.
            wait_for(lambda: refused(tracing.last["edges"]) >= first - 1_000, "a line")  # noqa: B023
        found = tracing.stop()
    mine = [edge for edge in found["edges"] if edge["netns"] == hosts[0].netns]
    assert refused(mine) == len(mine) == 6_000
    assert found["completeness"]["lost_errors"] == found["completeness"]["removed_edges"] == 0
