# SPDX-License-Identifier: Apache-2.0
"""Edges from lists of sockets, of connections that stay open until the last reading."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host
from tests.map.test_topologies import V4, V6, connections, edges_of
from tests.map.tracing import Tracing

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]
POLL = ("--method", "poll", "--interval", "1h")
"""Only the start and the end are readings: a socket has no owner until it is accepted."""


@pytest.mark.parametrize("is_older", [False, True], ids=["seen", "older than the tracer"])
@pytest.mark.parametrize(
    ("bridged", "address", "listens"),
    [("46", V4, V4), ("46", V6, V6), ("6", V6, V6), ("46", V4, "::")],
    indirect=["bridged"],
    ids=["ipv4", "ipv6", "ipv6 only", "mapped"],
)
def test_clients_on_a_bridge_have_an_edge_each(
    bridged: list[Host], program: Program, address: str, listens: str, is_older: bool
) -> None:
    shop, *others = bridged
    one, two, three = (address.format(number) for number in (1, 2, 3))
    server = shop.start(program("shop"))
    clients = [host.start(program("browser")) for host in others]

    def open_all() -> int:
        port = int(server.ask("listen", listens.format(1)))
        for number, client in enumerate(clients, 2):
            for connection in range(number):
                client.ask("open", f"{connection}", one, port)
                client.ask("exchange", f"{connection}", 10)
        return port

    if is_older:
        port = open_all()
    with Tracing(*POLL) as tracing:
        if not is_older:
            port = open_all()
        found = tracing.stop()
    edges = edges_of(found, bridged)
    assert connections(edges) == {
        ("browser", "client", two, one, port): 2,
        ("browser", "client", three, one, port): 3,
        ("shop", "server", one, two, port): 2,
        ("shop", "server", one, three, port): 3,
    }
    # No set-up is seen.
    assert {edge["direction"] for edge in edges} == {"listener"}
    assert [edge["active"] for edge in edges] == [edge["found"] + edge["opened"] for edge in edges]


def test_server_that_is_a_client_has_both_edges(bridged: list[Host], program: Program) -> None:
    browser, gateway, shop = (
        host.start(program(name))
        for host, name in zip(bridged, ("browser", "gateway", "shop"), strict=True)
    )
    one, two, three = (V4.format(number) for number in (1, 2, 3))
    with Tracing(*POLL) as tracing:
        front, back = int(gateway.ask("listen", two)), int(shop.ask("listen", three))
        browser.ask("open", "front", two, front)
        gateway.ask("open", "back", three, back)
        # Both are accepted then.
        browser.ask("exchange", "front", 10)
        gateway.ask("exchange", "back", 10)
        found = tracing.stop()
    assert connections(edges_of(found, bridged)) == {
        ("browser", "client", one, two, front): 1,
        ("gateway", "server", two, one, front): 1,
        ("gateway", "client", two, three, back): 1,
        ("shop", "server", three, two, back): 1,
    }


def test_services_that_share_a_port_are_both_listed(hosts: Hosts, program: Program) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing(*POLL) as tracing:
        port = 0
        for name in ("shop", "bank"):
            server = hosts[1].start(program(name))
            port = int(server.ask("listen", "10.99.0.2", port, 64, "reuse"))
        # The kernel chooses a listener by a hash of the ports: each has about half of them.
        for number in range(100):
            client.ask("open", f"{number}", "10.99.0.2", port)
            client.ask("exchange", f"{number}", 10)
        found = tracing.stop()
    counts = connections(edges_of(found, hosts))
    assert counts.pop(("browser", "client", "10.99.0.1", "10.99.0.2", port)) == 100
    assert {name for name, *_ in counts} == {"shop", "bank"}
    assert sum(counts.values()) == 100


def test_connected_sockets_of_udp_have_their_roles_and_no_bytes(
    hosts: Hosts, program: Program
) -> None:
    client = hosts[0].start(program("browser"))
    server = hosts[1].start(program("resolver"))
    server.ask("bind", "10.99.0.2", 53, "silent")
    client.ask("connect_datagrams", "one", "10.99.0.2", 53)
    with Tracing(*POLL) as tracing:
        found = tracing.stop()
    (edge,) = [edge for edge in edges_of(found, hosts) if edge["program"] == "browser"]
    assert (edge["protocol"], edge["role"], edge["peer"], edge["port"]) == (
        "udp",
        "client",
        "10.99.0.2",
        53,
    )
    assert not edge["bytes_known"]
