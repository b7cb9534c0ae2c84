# SPDX-License-Identifier: Apache-2.0
"""Retransmits, packets, round-trip times and errors, compared with the kernel's own numbers."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.map.hosts import Host, ip
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Tracing, of_port
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

METHODS = [[], ["--method", "aggregate", "--interval", "20ms"]]
WITH_STREAM = [*METHODS, ["--method", "stream", "--events", "all"]]
IDS = ["bundle", "aggregate", "stream"]


def sent_again(host: Host) -> int:
    """TCP segments that this namespace sent again."""
    command = ["ip", "netns", "exec", host.name, "cat", "/proc/net/snmp"]
    lines = subprocess.check_output(command, text=True).splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def of_socket(host: Host, port: int, name: str) -> int:
    """What `ss` shows of the only connection to a port."""
    command = [
        "ip",
        "netns",
        "exec",
        host.name,
        "ss",
        "-H",
        "-n",
        "-t",
        "-i",
        f"( dport = {port} )",
    ]
    (number,) = re.findall(rf"\b{name}:(\d+)", subprocess.check_output(command, text=True))
    return int(number)


@contextmanager
def cut(host: Host) -> Iterator[None]:
    """What this host sends to 10.99.0.2 reaches nobody: no device has the address of its frames."""
    neighbour = ["10.99.0.2", "dev", host.device]
    wrong = ["lladdr", "02:00:00:00:00:99", "nud", "permanent"]
    ip("-n", host.name, "neigh", "replace", *neighbour, *wrong)
    yield
    ip("-n", host.name, "neigh", "del", *neighbour)


@pytest.mark.parametrize("options", METHODS, ids=IDS[:2])
def test_retransmits_are_the_kernels_and_no_bytes(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    before = [sent_again(host) for host in hosts]
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        client.ask("open", "one", SERVER["4"], port)
        with cut(hosts[0]):
            client.ask("begin_exchange", "one", 5000)
            wait_for(lambda: sent_again(hosts[0]) > before[0] + 1, "a retransmit")
        client.ask("join", "one")
        client.ask("close", "one")
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    after = [sent_again(host) for host in hosts]
    edges = [of_port(found, port, role)[0] for role in ("client", "server")]
    assert edges[0]["retransmits"] > 1
    for edge, one, other in zip(edges, before, after, strict=True):
        assert edge["retransmits"] == other - one
        assert (edge["bytes_sent"], edge["bytes_received"]) == (5000, 5000)


@pytest.mark.parametrize("options", METHODS, ids=IDS[:2])
def test_packets_are_the_kernels(hosts: Hosts, program: Program, options: list[str]) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        client.ask("open", "one", SERVER["4"], port)
        for size in (1, 100_000):
            client.ask("exchange", "one", size)
        sent, received = (of_socket(hosts[0], port, f"data_segs_{way}") for way in ("out", "in"))
        found = tracing.stop()
    (edge,) = of_port(found, port, "client")
    assert (edge["packets_sent"], edge["packets_received"]) == (sent, received)
    (other,) = of_port(found, port, "server")
    # All segments arrived once.
    assert (other["packets_sent"], other["packets_received"]) == (received, sent)


@pytest.mark.parametrize("options", METHODS, ids=IDS[:2])
def test_sum_of_round_trip_times_is_that_of_the_readings(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        port, other = (int(server.ask("listen", SERVER["4"])) for _ in range(2))
        client.ask("short", SERVER["4"], port, 1, 100)
        client.ask("short", SERVER["4"], other, 30, 100)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    for role in ("client", "server"):
        rtt = of_port(found, port, role)[0]["rtt"]
        if rtt["count"] == 1:
            assert rtt["min_us"] == rtt["sum_us"] == rtt["max_us"]
        rtt = of_port(found, other, role)[0]["rtt"]
        assert rtt["count"] >= 30
        assert rtt["count"] * rtt["min_us"] <= rtt["sum_us"] <= rtt["count"] * rtt["max_us"]


@pytest.mark.parametrize("options", WITH_STREAM[:2], ids=IDS[:2])
def test_connections_that_break_are_counted_by_reason(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        for name in ("one", "two", "three"):
            client.ask("open", name, SERVER["4"], port)
            client.ask("exchange", name, 10)
        client.ask("reset", "one")
        client.ask("reset", "two")
        with cut(hosts[0]):
            assert client.ask("time_out", "three") == "TimeoutError"
        # The other end still waits.
        wait_for(lambda: [host.open_sockets() for host in hosts] == [0, 1])
        found = tracing.stop()
    (one,), (other,) = of_port(found, port, "client"), of_port(found, port, "server")
    assert (one["opened"], one["closed"], one["broken"]) == (3, 3, {"ETIMEDOUT": 1})
    assert (other["opened"], other["closed"], other["broken"]) == (3, 2, {"ECONNRESET": 2})
    assert one["failed"] == other["failed"] == {}


@pytest.mark.parametrize("options", WITH_STREAM, ids=IDS)
def test_connects_that_fail_or_are_given_up_are_counted_by_reason(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    client = hosts[0].start(program("browser"))
    # The other host is a router without a way to the last address.
    ip("-n", hosts[0].name, "route", "add", "10.77.0.0/24", "via", "10.99.0.2")
    ip("-n", hosts[1].name, "route", "add", "unreachable", "10.77.0.0/24")
    ip("netns", "exec", hosts[1].name, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
    with Tracing(*options) as tracing:
        for _ in range(2):
            assert client.ask("refused", "10.77.0.1", 7) == "OSError"
        with cut(hosts[0]):
            assert client.ask("connect_without_answer", "one", SERVER["4"], 7) == "waiting"
            client.ask("close", "one")
        found = tracing.stop()
    edges = [edge for edge in of_port(found, 7) if edge["netns"] == hosts[0].netns]
    assert {edge["peer"]: edge["failed"] for edge in edges} == {
        "10.77.0.1": {"EHOSTUNREACH": 2},
        SERVER["4"]: {"given_up": 1},
    }
    assert all(edge["opened"] == edge["active"] == 0 for edge in edges)


@pytest.mark.parametrize("options", WITH_STREAM, ids=IDS)
def test_datagrams_that_are_not_sent_are_counted_by_reason(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        client.ask("connect_datagrams", "one", SERVER["4"], 5371)
        assert client.ask("failed_send", "one", 10) == "sent"
        for _ in range(2):
            assert client.ask("failed_send", "one", 70_000) == "EMSGSIZE"
        ip("-n", hosts[0].name, "route", "add", "unreachable", f"{SERVER['4']}/32")
        assert client.ask("failed_send", "one", 10) == "EHOSTUNREACH"
        found = tracing.stop()
    (edge,) = [edge for edge in of_port(found, 5371) if edge["program"] == "browser"]
    # The first datagram reached a port that no socket has: the kernel reports that only once.
    errors = dict(edge["send_errors"])
    errors.pop("ECONNREFUSED", 0)
    assert errors == {"EMSGSIZE": 2, "EHOSTUNREACH": 1}
    assert (edge["packets_sent"], edge["bytes_sent"]) == (1, 10)


@pytest.mark.parametrize("options", WITH_STREAM, ids=IDS)
def test_directions_without_a_listener_are_guessed_from_ports(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    # Accepted connections have no backlog then.
    port = int(server.ask("listen", SERVER["4"], 5372, 0))
    client.ask("open", "old", SERVER["4"], port)
    client.ask("exchange", "old", 10)
    server.ask("close_listener", port)
    with Tracing(*options) as tracing:
        client.ask("exchange", "old", 700)
        found = tracing.stop()
    edges = of_port(found, port)
    assert {(edge["program"], edge["role"], edge["direction"]) for edge in edges} == {
        ("browser", "client", "guessed"),
        ("shop", "server", "guessed"),
    }
    assert [(edge["found"], edge["bytes_sent"]) for edge in edges] == [(1, 700)] * 2


def test_errors_without_room_are_counted_as_lost(hosts: Hosts, program: Program) -> None:
    """The kernel has room for 4,096 numbers of errors by edge and reason; a tracer that is stopped
    does not empty its map."""
    client = hosts[0].start(program("browser"))
    count = 4500
    with Tracing() as tracing:
        tracing.process.send_signal(signal.SIGSTOP)
        client.ask("refused_ports", SERVER["4"], 20_000, count)
        tracing.process.send_signal(signal.SIGCONT)
        found = tracing.stop()
    edges = [edge for edge in found["edges"] if edge["netns"] == hosts[0].netns]
    failed = [edge["failed"] for edge in edges if edge["failed"]]
    assert all(one == {"ECONNREFUSED": 1} for one in failed)
    lost = found["completeness"]["lost_errors"]
    assert not found["complete"]
    # Other programs of this machine may have lost some, too.
    assert count - 4096 <= count - len(failed) <= lost
