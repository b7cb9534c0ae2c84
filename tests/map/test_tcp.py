# SPDX-License-Identifier: Apache-2.0
"""Edges of TCP connections, compared with what the programs did."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host, executable
from tests.map.tracing import Tracing, of_port
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

CLIENT, SERVER = {"4": "10.99.0.1", "6": "fd99::1"}, {"4": "10.99.0.2", "6": "fd99::2"}


def all_closed(hosts: Hosts) -> bool:
    return not any(host.open_sockets() for host in hosts)


@pytest.mark.parametrize("version", ["4", "6", "mapped"])
def test_short_connections_are_one_exact_edge_at_each_end(
    hosts: Hosts, program: Program, version: str
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing() as tracing:
        address = SERVER["4" if version == "mapped" else version]
        port = int(server.ask("listen", "::" if version == "mapped" else address))
        client.ask("short", address, port, 50, 1000)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    assert found["complete"]
    (client_edge,), (server_edge,) = of_port(found, port, "client"), of_port(found, port, "server")
    family = "4" if version == "mapped" else version
    for edge in (client_edge, server_edge):
        assert (edge["opened"], edge["closed"], edge["active"], edge["found"]) == (50, 50, 0, 0)
        assert (edge["bytes_sent"], edge["bytes_received"]) == (50_000, 50_000)
        assert (edge["protocol"], edge["direction"]) == ("tcp", "observed")
        assert edge["failed"] == edge["broken"] == {}
        assert 0 < edge["rtt"]["min_us"] <= edge["rtt"]["max_us"]
        assert edge["rtt"]["count"] == 50
        assert edge["first_seen_ns"] < edge["last_seen_ns"]
    assert (client_edge["local"], client_edge["peer"]) == (CLIENT[family], SERVER[family])
    assert (server_edge["local"], server_edge["peer"]) == (SERVER[family], CLIENT[family])
    assert (client_edge["program"], server_edge["program"]) == ("browser", "shop")
    assert (client_edge["pid"], server_edge["pid"]) == (client.pid, server.pid)
    assert (client_edge["netns"], server_edge["netns"]) == (hosts[0].netns, hosts[1].netns)


@pytest.mark.parametrize("backlog", [64, 0])
def test_connections_older_than_the_tracer_have_the_right_direction(
    hosts: Hosts, program: Program, backlog: int
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"], 0, backlog))
    client.ask("open", "old", SERVER["4"], port)
    client.ask("exchange", "old", 5000)
    with Tracing() as tracing:
        client.ask("exchange", "old", 700)
        found = tracing.stop()
    (client_edge,), (server_edge,) = of_port(found, port, "client"), of_port(found, port, "server")
    for edge in (client_edge, server_edge):
        assert (edge["found"], edge["opened"], edge["active"]) == (1, 0, 1)
        assert (edge["bytes_sent"], edge["bytes_received"]) == (700, 700)
    assert (client_edge["program"], server_edge["program"]) == ("browser", "shop")
    assert (client_edge["pid"], server_edge["pid"]) == (client.pid, server.pid)
    assert (client_edge["direction"], server_edge["direction"]) == ("listener", "listener")


def test_listener_older_than_the_tracer_owns_what_it_accepts(
    hosts: Hosts, program: Program
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"]))
    with Tracing() as tracing:
        client.ask("short", SERVER["4"], port, 3, 10)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    (edge,) = of_port(found, port, "server")
    assert (edge["program"], edge["pid"], edge["opened"]) == ("shop", server.pid, 3)


@pytest.mark.parametrize("method", ["bundle", "aggregate"])
def test_a_socket_that_is_used_again_has_an_edge_each_time(
    hosts: Hosts, program: Program, method: str
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    first, second = (int(server.ask("listen", SERVER["4"])) for _ in range(2))
    with Tracing("--method", method) as tracing:
        client.ask("open", "one", SERVER["4"], first)
        client.ask("exchange", "one", 300)
        client.ask("connect_again", "one", SERVER["4"], second)
        client.ask("exchange", "one", 500)
        own = int(client.ask("listen_again", "one"))
        server.ask("short", CLIENT["4"], own, 2, 10)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    for port, size, opened in ((first, 300, 1), (second, 500, 1), (own, 20, 2)):
        for role in ("client", "server"):
            (edge,) = of_port(found, port, role)
            assert (edge["opened"], edge["closed"], edge["active"]) == (opened, opened, 0)
            assert (edge["bytes_sent"], edge["bytes_received"]) == (size, size)
            is_listener = port == own
            assert edge["program"] == ("browser" if (role == "client") ^ is_listener else "shop")


def test_refused_connects_are_counted_by_reason(hosts: Hosts, program: Program) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing() as tracing:
        for _ in range(3):
            assert client.ask("refused", SERVER["4"], 7) == "ConnectionRefusedError"
        found = tracing.stop()
    edges = [edge for edge in of_port(found, 7) if edge["netns"] == hosts[0].netns]
    (edge,) = edges
    assert edge["failed"] == {"ECONNREFUSED": 3}
    assert (edge["role"], edge["opened"], edge["program"]) == ("client", 0, "browser")


@pytest.mark.parametrize("method", ["bundle", "aggregate", "stream"])
def test_failed_connects_beyond_the_limit_are_in_the_folded_edge(
    hosts: Hosts, program: Program, method: str
) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing("--max-edges", "1", "--method", method) as tracing:
        for port in (7, 9, 11):
            assert client.ask("refused", SERVER["4"], port) == "ConnectionRefusedError"
        found = tracing.stop()
    # What other programs of this machine did meanwhile is in them too.
    assert len(found["edges"]) <= 2
    assert sum(edge["failed"].get("ECONNREFUSED", 0) for edge in found["edges"]) >= 3


def test_two_programs_of_one_host_are_two_edges(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    clients = [hosts[0].start(program(name)) for name in ("browser", "crawler")]
    with Tracing() as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        for number, client in enumerate(clients, 1):
            client.ask("short", SERVER["4"], port, number, 100 * number)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    edges = of_port(found, port, "client")
    assert {edge["program"]: (edge["opened"], edge["bytes_sent"]) for edge in edges} == {
        "browser": (1, 100),
        "crawler": (2, 400),
    }
    (edge,) = of_port(found, port, "server")
    assert (edge["opened"], edge["bytes_received"]) == (3, 500)


def test_programs_with_one_name_are_one_edge(hosts: Hosts, tmp_path: Path) -> None:
    copies = [tmp_path / name for name in ("old", "new")]
    for folder in copies:
        folder.mkdir()
    server = hosts[1].start(executable(tmp_path, "shop"))
    clients = [hosts[0].start(executable(folder, "browser")) for folder in copies]
    with Tracing() as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        for number, client in enumerate(clients, 1):
            client.ask("short", SERVER["4"], port, number, 100)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    (edge,) = of_port(found, port, "client")
    assert (edge["program"], edge["pid"]) == ("browser", clients[1].pid)
    assert (edge["opened"], edge["closed"], edge["bytes_sent"]) == (3, 3, 300)


def test_edges_beyond_the_limit_are_folded_and_reported(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    ports = [int(server.ask("listen", SERVER["4"])) for _ in range(8)]
    begin_ns = time.time_ns()
    with Tracing("--max-edges", "4") as tracing:
        for port in ports:
            client.ask("short", SERVER["4"], port, 2, 100)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    assert not found["complete"]
    assert found["completeness"]["folded"] > 0
    assert len(found["edges"]) <= 5
    (other,) = [edge for edge in found["edges"] if edge["role"] == "other"]
    # Clocks are compared, so one second of tolerance.
    assert begin_ns - 1_000_000_000 < other["first_seen_ns"] <= other["last_seen_ns"]
    # Connections of this machine's other programs are in it too, some of them opened before.
    assert other["opened"] <= other["closed"] + other["active"]
    mine = [edge for edge in found["edges"] if edge["port"] in ports] + [other]
    assert sum(edge["opened"] for edge in mine) >= 2 * 8 * 2
    assert sum(edge["bytes_sent"] for edge in mine) >= 2 * 8 * 2 * 100
