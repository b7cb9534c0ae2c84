# SPDX-License-Identifier: Apache-2.0
"""Which end of datagrams is the server, and how that is known."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host
from tests.map.test_tcp import CLIENT, SERVER
from tests.map.tracing import Tracing, of_port
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]
Direction = tuple[str, str]

TICKS = 6
"""CLOCK_MONOTONIC_COARSE, which advances at each tick of the kernel."""

NAMES = ("resolver", "browser")
METHODS = pytest.mark.parametrize("method", ["bundle", "aggregate", "stream"])


def directions(found: dict[str, object], port: int) -> dict[str, Direction]:
    """Role and direction by program."""
    edges = [edge for edge in of_port(found, port) if edge["program"] in NAMES]
    ends = {edge["program"]: (edge["role"], edge["direction"]) for edge in edges}
    assert len(ends) == len(edges), edges
    return ends


def wait_for_tick() -> None:
    tick = time.clock_gettime(TICKS)
    wait_for(lambda: time.clock_gettime(TICKS) > tick)


@METHODS
@pytest.mark.parametrize(
    ("how", "local", "port", "client"),
    [
        # Its port is one that the kernel could have chosen.
        ("unconnected", 45678, 5361, "observed"),
        ("connected", 45678, 5361, "observed"),
        # Resolvers choose any port that is not privileged.
        ("unconnected", 12345, 53, "observed"),
        ("connected", 6001, 5361, "observed"),
        # Both could be the service's.
        ("unconnected", 6001, 5361, "guessed"),
    ],
)
def test_client_that_chose_its_port_is_the_client(
    hosts: Hosts, program: Program, method: str, *, how: str, local: int, port: int, client: str
) -> None:
    there = hosts[1].start(program("resolver"))
    here = hosts[0].start(program("browser"))
    with Tracing("--method", method) as tracing:
        there.ask("udp", "service", "unconnected", CLIENT["4"], 9, port)
        here.ask("udp", "new", how, SERVER["4"], port, local)
        for _ in range(2):
            here.ask("send", "new")
            there.ask("receive", "service")
            there.ask("send", "service")
            here.ask("receive", "new")
        found = tracing.stop()
    assert directions(found, port) == {
        "browser": ("client", client),
        "resolver": ("server", "observed"),
    }
    assert not [edge for edge in of_port(found, local) if edge["program"] in NAMES]


@METHODS
def test_server_that_sends_first_has_the_lower_port(
    hosts: Hosts, program: Program, method: str
) -> None:
    there = hosts[1].start(program("resolver"))
    here = hosts[0].start(program("browser"))
    with Tracing("--method", method) as tracing:
        here.ask("udp", "new", "unconnected", SERVER["4"], 53, 45679)
        there.ask("udp", "service", "unconnected", CLIENT["4"], 45679, 53)
        there.ask("send", "service")
        here.ask("receive", "new")
        here.ask("send", "new")
        there.ask("receive", "service")
        found = tracing.stop()
    ends = {"browser": ("client", "guessed"), "resolver": ("server", "guessed")}
    assert directions(found, 53) == ends
    assert not [edge for edge in of_port(found, 45679) if edge["program"] in NAMES]


@METHODS
@pytest.mark.parametrize(
    ("how", "local"),
    [
        ("unconnected", 0),
        ("connected", 0),
        ("unconnected", 45680),
        ("connected", 45680),
    ],
)
def test_ends_older_than_the_tracer_have_their_roles_when_a_reply_is_seen_first(
    hosts: Hosts, program: Program, method: str, how: str, local: int
) -> None:
    there = hosts[1].start(program("resolver"))
    here = hosts[0].start(program("browser"))
    there.ask("udp", "service", "unconnected", CLIENT["4"], 9, 5362)
    here.ask("udp", "old", how, SERVER["4"], 5362, local)
    here.ask("send", "old")
    there.ask("receive", "service")
    with Tracing("--method", method) as tracing:
        there.ask("send", "service")
        here.ask("receive", "old")
        here.ask("send", "old")
        there.ask("receive", "service")
        found = tracing.stop()
    assert directions(found, 5362) == {
        "browser": ("client", "guessed"),
        "resolver": ("server", "listener"),
    }


@METHODS
def test_edge_of_an_older_client_is_observed_when_a_new_socket_has_the_same(
    hosts: Hosts, program: Program, method: str
) -> None:
    there = hosts[1].start(program("resolver"))
    here = hosts[0].start(program("browser"))
    # It reads nothing, so that only the client has an edge.
    there.ask("udp", "service", "unconnected", CLIENT["4"], 9, 5363)
    here.ask("udp", "old", "connected", SERVER["4"], 5363)

    def find(*names: str) -> dict[str, Direction]:
        with Tracing("--method", method) as tracing:
            here.ask("udp", "new", "connected", SERVER["4"], 5363)
            for name in names:
                here.ask("send", name)
                # How edges are known is looked at once per tick of the kernel.
                wait_for_tick()
            return directions(tracing.stop(), 5363)

    assert find("old") == {"browser": ("client", "guessed")}
    assert find("old", "new") == {"browser": ("client", "observed")}


def test_connected_service_is_the_server(hosts: Hosts, program: Program) -> None:
    """As servers of QUIC or DTLS have them: a socket for each client, at the service's port."""
    there = hosts[1].start(program("resolver"))
    here = hosts[0].start(program("browser"))
    here.ask("udp", "one", "connected", SERVER["4"], 443, 45681)
    with Tracing() as tracing:
        there.ask("udp", "service", "connected", CLIENT["4"], 45681, 443)
        there.ask("send", "service")
        here.ask("receive", "one")
        found = tracing.stop()
    assert directions(found, 443)["resolver"] == ("server", "guessed")
