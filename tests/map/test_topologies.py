# SPDX-License-Identifier: Apache-2.0
"""All edges of hosts whose programs are known: every one is right, and there is no other."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.map.hosts import Host
from tests.map.tracing import Edge, Tracing
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]
Counts = dict[tuple[str, str, str, str, int], int]

V4, V6 = "10.98.0.{}", "fd98::{}"

METHODS: dict[str, list[str]] = {
    "bundle": [],
    "aggregate": ["--method", "aggregate", "--interval", "50ms"],
    "stream": ["--method", "stream", "--events", "all"],
}
by_each_method = pytest.mark.parametrize("options", METHODS.values(), ids=METHODS)


def edges_of(found: dict[str, Any], hosts: Sequence[Host]) -> list[Edge]:
    numbers = {host.netns for host in hosts}
    return [edge for edge in found["edges"] if edge["netns"] in numbers]


def connections(edges: list[Edge]) -> Counts:
    """How many were open or opened, by program, role, addresses and port."""
    counts: Counts = {}
    for edge in edges:
        key = tuple(edge[name] for name in ("program", "role", "local", "peer", "port"))
        assert key not in counts, f"two edges of {key}"
        counts[key] = edge["found"] + edge["opened"]
    return counts


def all_closed(hosts: Sequence[Host]) -> bool:
    return not any(host.open_sockets() for host in hosts)


@by_each_method
@pytest.mark.parametrize(
    ("bridged", "address"), [("46", V4), ("46", V6), ("6", V6)], indirect=["bridged"],
    ids=["ipv4", "ipv6", "ipv6 only"],
)  # fmt: skip
def test_clients_on_a_bridge_have_an_edge_each(
    bridged: list[Host], program: Program, address: str, options: list[str]
) -> None:
    shop, *clients = bridged
    one, two, three = (address.format(number) for number in (1, 2, 3))
    with Tracing(*options) as tracing:
        port = int(shop.start(program("shop")).ask("listen", one))
        for number, host in enumerate(clients, 1):
            host.start(program("browser")).ask("short", one, port, 10 * number, 100)
        wait_for(lambda: all_closed(bridged))
        found = tracing.stop()
    edges = edges_of(found, bridged)
    assert connections(edges) == {
        ("browser", "client", two, one, port): 10,
        ("browser", "client", three, one, port): 20,
        ("shop", "server", one, two, port): 10,
        ("shop", "server", one, three, port): 20,
    }
    assert {edge["direction"] for edge in edges} == {"observed"}
    assert {edge["bytes_sent"] for edge in edges} == {1000, 2000}


@by_each_method
def test_server_that_is_a_client_has_both_edges(
    bridged: list[Host], program: Program, options: list[str]
) -> None:
    browser, gateway, shop = (
        host.start(program(name))
        for host, name in zip(bridged, ("browser", "gateway", "shop"), strict=True)
    )
    one, two, three = (V4.format(number) for number in (1, 2, 3))
    with Tracing(*options) as tracing:
        front, back = int(gateway.ask("listen", two)), int(shop.ask("listen", three))
        browser.ask("short", two, front, 5, 10)
        gateway.ask("short", three, back, 7, 10)
        wait_for(lambda: all_closed(bridged))
        found = tracing.stop()
    edges = edges_of(found, bridged)
    assert connections(edges) == {
        ("browser", "client", one, two, front): 5,
        ("gateway", "server", two, one, front): 5,
        ("gateway", "client", two, three, back): 7,
        ("shop", "server", three, two, back): 7,
    }
    assert {edge["direction"] for edge in edges} == {"observed"}


@by_each_method
def test_services_that_share_a_port_are_both_listed(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        port = 0
        for name in ("shop", "bank"):
            server = hosts[1].start(program(name))
            port = int(server.ask("listen", "10.99.0.2", port, 64, "reuse"))
        # The kernel chooses a listener by a hash of the ports: each has about half of them.
        client.ask("short", "10.99.0.2", port, 100, 10)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    counts = connections(edges_of(found, hosts))
    assert counts.pop(("browser", "client", "10.99.0.1", "10.99.0.2", port)) == 100
    assert {program for program, *_ in counts} == {"shop", "bank"}
    assert sum(counts.values()) == 100


@by_each_method
@pytest.mark.parametrize("is_older", [False, True], ids=["seen", "older than the tracer"])
def test_port_that_another_service_uses_again_has_an_edge_for_each(
    hosts: Hosts, program: Program, is_older: bool, options: list[str]
) -> None:
    shop, bank = (hosts[1].start(program(name)) for name in ("shop", "bank"))
    client = hosts[0].start(program("browser"))

    def change_service() -> int:
        port = int(shop.ask("listen", "10.99.0.2"))
        for number in range(3):
            client.ask("open", f"shop-{number}", "10.99.0.2", port)
            client.ask("exchange", f"shop-{number}", 10)
        shop.ask("close_listener", port)
        bank.ask("listen", "10.99.0.2", port)
        return port

    if is_older:
        port = change_service()
    with Tracing(*options) as tracing:
        if not is_older:
            port = change_service()
        for number in range(5):
            client.ask("open", f"bank-{number}", "10.99.0.2", port)
            client.ask("exchange", f"bank-{number}", 10)
        found = tracing.stop()
    edges = edges_of(found, hosts)
    assert connections(edges) == {
        ("browser", "client", "10.99.0.1", "10.99.0.2", port): 8,
        ("shop", "server", "10.99.0.2", "10.99.0.1", port): 3,
        ("bank", "server", "10.99.0.2", "10.99.0.1", port): 5,
    }
    assert "guessed" not in {edge["direction"] for edge in edges}


@by_each_method
@pytest.mark.exhaustive
def test_ten_thousand_short_connections_between_two_readings_are_counted(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", "10.99.0.2"))
        client.ask("short", "10.99.0.2", port, 10_000, 64)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    assert found["complete"]
    edges = edges_of(found, hosts)
    assert connections(edges) == {
        ("browser", "client", "10.99.0.1", "10.99.0.2", port): 10_000,
        ("shop", "server", "10.99.0.2", "10.99.0.1", port): 10_000,
    }
    for edge in edges:
        assert (edge["closed"], edge["bytes_sent"], edge["bytes_received"]) == (
            10_000, 640_000, 640_000,
        )  # fmt: skip


@by_each_method
def test_name_server_is_the_server_of_clients_that_bind_no_port(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    with Tracing(*options) as tracing:
        resolver = hosts[1].start(program("resolver"))
        resolver.ask("bind", "10.99.0.2", 53)
        for name, how in (("browser", "connected"), ("crawler", "unconnected")):
            hosts[0].start(program(name)).ask("datagrams", how, "10.99.0.2", 53, 10, 40)
        found = tracing.stop()
    edges = edges_of(found, hosts)
    roles = {(edge["program"], edge["role"]): edge for edge in edges}
    assert set(roles) == {("browser", "client"), ("crawler", "client"), ("resolver", "server")}
    assert len(edges) == 3
    for (name, _), edge in roles.items():
        count = 20 if name == "resolver" else 10
        assert (edge["protocol"], edge["port"], edge["service"]) == ("udp", 53, "domain")
        assert (edge["packets_sent"], edge["packets_received"]) == (count, count)
        assert edge["peer"] == ("10.99.0.1" if name == "resolver" else "10.99.0.2")
        assert edge["direction"] != "guessed"


@by_each_method
def test_threads_of_a_server_that_share_a_socket_have_exact_edges(
    bridged: list[Host], program: Program, options: list[str]
) -> None:
    resolver, *clients = bridged
    with Tracing(*options) as tracing:
        resolver.start(program("resolver")).ask("bind", V4.format(1), 5360, "address", 4)
        programs = [host.start(program("browser")) for host in clients]
        words = ("datagrams", "connected", V4.format(1), 5360)
        with ThreadPoolExecutor() as threads:
            asked = [
                threads.submit(client.ask, *words, 300 + 100 * number, 40)
                for number, client in enumerate(programs)
            ]
            assert [answer.result() for answer in asked] == ["done"] * 2
        found = tracing.stop()
    edges = [edge for edge in edges_of(found, [resolver]) if edge["program"] == "resolver"]
    counts = {edge["peer"]: (edge["packets_sent"], edge["packets_received"]) for edge in edges}
    assert counts == {V4.format(2): (300, 300), V4.format(3): (400, 400)}


@by_each_method
def test_directions_are_known_where_two_listeners_share_a_port(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    """One has a backlog, the other has none."""
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    expected: Counts = {}
    ends = [("10.99.0.1", "10.99.0.2"), ("fd99::1", "fd99::2")]
    for number, pairs in enumerate([ends, ends[::-1]] * 2):
        port = 0
        for (one, two), backlog in zip(pairs, (0, 64) if number < 2 else (64, 0), strict=True):
            port = int(server.ask("listen", two, port, backlog))
            client.ask("open", f"{number}-{one}", two, port)
            client.ask("exchange", f"{number}-{one}", 10)
            expected["browser", "client", one, two, port] = 1
            expected["shop", "server", two, one, port] = 1
    with Tracing(*options) as tracing:
        found = tracing.stop()
    assert connections(edges_of(found, hosts)) == expected


@by_each_method
def test_directions_of_older_connections_are_not_guessed(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    expected: Counts = {}
    for number in range(40):
        one, two = (("10.99.0.1", "10.99.0.2"), ("fd99::1", "fd99::2"))[number % 2]
        # A listener's backlog is how an accepted connection is told from a client's.
        port = int(server.ask("listen", two, 0, 64 if number % 4 < 2 else 0))
        for connection in range(2):
            client.ask("open", f"{number}-{connection}", two, port)
            client.ask("exchange", f"{number}-{connection}", 10)
        expected["browser", "client", one, two, port] = 2
        expected["shop", "server", two, one, port] = 2
    with Tracing(*options) as tracing:
        found = tracing.stop()
    edges = edges_of(found, hosts)
    assert connections(edges) == expected
    guessed = [edge for edge in edges if edge["direction"] == "guessed"]
    assert len(guessed) <= 0.02 * len(edges)
