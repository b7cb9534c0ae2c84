# SPDX-License-Identifier: Apache-2.0
"""Edges of datagrams, compared with what the programs sent."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host, ip
from tests.map.test_tcp import CLIENT, SERVER
from tests.map.tracing import Tracing, of_port

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]


@pytest.mark.parametrize("how", ["connected", "unconnected"])
@pytest.mark.parametrize("version", ["4", "6", "mapped"])
def test_datagrams_are_one_exact_edge_at_each_end(
    hosts: Hosts, program: Program, version: str, how: str
) -> None:
    server = hosts[1].start(program("resolver"))
    client = hosts[0].start(program("browser"))
    family = "4" if version == "mapped" else version
    with Tracing() as tracing:
        port = int(server.ask("bind", "::" if version == "mapped" else SERVER[version], 5353))
        for _ in range(3):
            client.ask("datagrams", how, SERVER[family], port, 10, 100)
        found = tracing.stop()
    edges = [edge for edge in of_port(found, port) if edge["program"] in ("resolver", "browser")]
    (client_edge,) = [edge for edge in edges if edge["role"] == "client"]
    (server_edge,) = [edge for edge in edges if edge["role"] == "server"]
    for edge in (client_edge, server_edge):
        assert edge["protocol"] == "udp"
        assert (edge["bytes_sent"], edge["bytes_received"]) == (3000, 3000)
        assert (edge["packets_sent"], edge["packets_received"]) == (30, 30)
    assert (client_edge["peer"], server_edge["peer"]) == (SERVER[family], CLIENT[family])
    assert client_edge["direction"] == "observed"
    assert (client_edge["program"], server_edge["program"]) == ("browser", "resolver")
    assert (client_edge["pid"], server_edge["pid"]) == (client.pid, server.pid)


@pytest.mark.parametrize("version", ["4", "6", "mapped"])
def test_datagram_of_a_connected_socket_to_another_address_has_that_peer(
    hosts: Hosts, program: Program, version: str
) -> None:
    servers = [hosts[1].start(program(name)) for name in ("resolver", "silent")]
    client = hosts[0].start(program("browser"))
    family = "4" if version == "mapped" else version
    with Tracing() as tracing:
        port = int(servers[0].ask("bind", SERVER[family], 5358))
        other = int(servers[1].ask("bind", SERVER[family], 5359, "silent"))
        address = f"::ffff:{SERVER['4']}" if version == "mapped" else SERVER[family]
        client.ask("datagrams_elsewhere", address, port, other)
        found = tracing.stop()
    sent = {
        edge["port"]: (edge["packets_sent"], edge["bytes_sent"], edge["packets_received"])
        for edge in found["edges"]
        if edge["program"] == "browser" and edge["role"] == "client"
    }
    assert sent == {port: (3, 30, 3), other: (2, 40, 0)}
    assert {edge["peer"] for edge in of_port(found, other, "client")} == {SERVER[family]}


def test_server_older_than_the_tracer_is_the_server(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("resolver"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("bind", SERVER["4"], 5354))
    client.ask("datagrams", "connected", SERVER["4"], port, 1, 100)
    with Tracing() as tracing:
        client.ask("datagrams", "connected", SERVER["4"], port, 2, 100)
        found = tracing.stop()
    (edge,) = [edge for edge in of_port(found, port) if edge["program"] == "resolver"]
    assert (edge["role"], edge["direction"], edge["bytes_sent"]) == ("server", "listener", 200)


def test_refused_datagrams_are_counted_by_reason(hosts: Hosts, program: Program) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing() as tracing:
        assert client.ask("lost_datagram", SERVER["4"], 9) == "ConnectionRefusedError"
        found = tracing.stop()
    (edge,) = [edge for edge in of_port(found, 9) if edge["program"] == "browser"]
    assert (edge["packets_sent"], edge["receive_errors"]) == (1, {"ECONNREFUSED": 1})


def test_datagram_that_comes_back_with_an_error_was_not_received(
    hosts: Hosts, program: Program
) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing() as tracing:
        assert client.ask("returned_datagram", SERVER["4"], 9) == "x"
        found = tracing.stop()
    (edge,) = [edge for edge in of_port(found, 9) if edge["program"] == "browser"]
    assert (edge["packets_sent"], edge["packets_received"], edge["bytes_received"]) == (1, 0, 0)


def test_receive_that_a_signal_interrupts_is_no_error(hosts: Hosts, program: Program) -> None:
    silent = hosts[1].start(program("silent"))
    client = hosts[0].start(program("browser"))
    with Tracing() as tracing:
        port = int(silent.ask("bind", SERVER["4"], 0, "silent"))
        assert client.ask("interrupted_receive", SERVER["4"], port) == "interrupted"
        found = tracing.stop()
    (edge,) = [edge for edge in of_port(found, port) if edge["program"] == "browser"]
    assert (edge["packets_sent"], edge["receive_errors"]) == (1, {})


def test_threads_that_share_a_socket_keep_their_peers(hosts: Hosts, program: Program) -> None:
    client = hosts[0].start(program("browser"))
    # Its neighbour stays unknown until it gets one below.
    device = hosts[0].device
    ip(
        "-n",
        hosts[0].name,
        "ntable",
        "change",
        "name",
        "arp_cache",
        "dev",
        device,
        "retrans",
        "1000000",
    )
    with Tracing() as tracing:
        client.ask("contended_send", "10.99.0.77", SERVER["4"], "10.99.0.3", 5357)
        neighbour = ["10.99.0.77", "lladdr", "02:00:00:00:00:77", "dev", device]
        ip("-n", hosts[0].name, "neigh", "replace", *neighbour)
        client.ask("join", "contended")
        found = tracing.stop()
    edges = [edge for edge in of_port(found, 5357) if edge["program"] == "browser"]
    sent = {edge["peer"]: edge["packets_sent"] for edge in edges}
    assert sent.pop("10.99.0.77") > 0
    assert sent == {SERVER["4"]: 1}
