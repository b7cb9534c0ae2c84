# SPDX-License-Identifier: Apache-2.0
"""Edges by each method, compared with what the programs did."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.map.hosts import Host
from tests.map.test_tcp import CLIENT, SERVER, all_closed
from tests.map.tracing import Edge, Tracing, of_port
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

AGGREGATE = ["--method", "aggregate", "--interval", "20ms"]
STREAM = ["--method", "stream"]
STREAM_ALL = [*STREAM, "--events", "all"]


def ends(version: str) -> tuple[str, str]:
    """The family of the addresses in edges, and the address that the server listens on."""
    return ("4", "::") if version == "mapped" else (version, SERVER[version])


def addresses(edge: Edge) -> tuple[str, str, str]:
    return edge["program"], edge["local"], edge["peer"]


@pytest.mark.parametrize("version", ["4", "6", "mapped"])
@pytest.mark.parametrize("options", [AGGREGATE, STREAM_ALL], ids=["aggregate", "stream"])
def test_short_connections_are_one_exact_edge_at_each_end(
    hosts: Hosts, program: Program, version: str, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    family, address = ends(version)
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", address))
        client.ask("short", SERVER[family], port, 50, 1000)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    assert found["method"] == options[1]
    assert found["complete"]
    (one,), (other,) = of_port(found, port, "client"), of_port(found, port, "server")
    for edge in (one, other):
        assert (edge["opened"], edge["closed"], edge["active"], edge["found"]) == (50, 50, 0, 0)
        assert (edge["bytes_sent"], edge["bytes_received"]) == (50_000, 50_000)
        assert (edge["protocol"], edge["direction"]) == ("tcp", "observed")
        assert edge["bytes_known"]
        assert edge["failed"] == edge["broken"] == {}
    assert addresses(one) == ("browser", CLIENT[family], SERVER[family])
    assert addresses(other) == ("shop", SERVER[family], CLIENT[family])
    assert (one["pid"], other["pid"]) == (client.pid, server.pid)


@pytest.mark.parametrize("version", ["4", "6", "mapped"])
@pytest.mark.parametrize("options", [AGGREGATE, STREAM_ALL], ids=["aggregate", "stream"])
def test_connection_older_than_the_tracer_is_found(
    hosts: Hosts, program: Program, version: str, options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    family, address = ends(version)
    port = int(server.ask("listen", address))
    client.ask("open", "old", SERVER[family], port)
    client.ask("exchange", "old", 5000)
    with Tracing(*options) as tracing:
        client.ask("exchange", "old", 300)
        client.ask("exchange", "old", 300)
        found = tracing.stop()
    for role in ("client", "server"):
        (edge,) = of_port(found, port, role)
        assert (edge["found"], edge["opened"], edge["active"]) == (1, 0, 1)
        assert (edge["bytes_sent"], edge["bytes_received"]) == (600, 600)
        assert edge["direction"] == "listener"
        local, peer = (CLIENT, SERVER) if role == "client" else (SERVER, CLIENT)
        assert (edge["local"], edge["peer"]) == (local[family], peer[family])


def test_stream_of_set_ups_says_that_bytes_are_unknown(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing(*STREAM) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        client.ask("short", SERVER["4"], port, 50, 1000)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    for role in ("client", "server"):
        (edge,) = of_port(found, port, role)
        assert (edge["opened"], edge["bytes_sent"], edge["bytes_known"]) == (50, 0, False)


@pytest.mark.parametrize("version", ["4", "6", "mapped"])
@pytest.mark.parametrize("options", [AGGREGATE, STREAM], ids=["aggregate", "stream"])
def test_datagrams_are_one_exact_edge_at_each_end(
    hosts: Hosts, program: Program, version: str, options: list[str]
) -> None:
    server = hosts[1].start(program("resolver"))
    client = hosts[0].start(program("browser"))
    family, address = ends(version)
    with Tracing(*options) as tracing:
        port = int(server.ask("bind", address, 5355))
        for how in ("connected", "unconnected"):
            client.ask("datagrams", how, SERVER[family], port, 10, 100)
        found = tracing.stop()
    edges = [edge for edge in of_port(found, port) if edge["program"] in ("resolver", "browser")]
    # A client that is not connected has no local address of its own.
    assert sum(edge["role"] == "client" for edge in edges) == 2
    assert {edge["peer"] for edge in edges} == {CLIENT[family], SERVER[family]}
    for role in ("client", "server"):
        of_role = [edge for edge in edges if edge["role"] == role]
        assert sum(edge["bytes_sent"] for edge in of_role) == 2000
        assert sum(edge["packets_received"] for edge in of_role) == 20
        assert all(edge["bytes_known"] for edge in of_role)


@pytest.mark.parametrize("options", [AGGREGATE, STREAM], ids=["aggregate", "stream"])
def test_failed_connects_are_counted_by_reason(
    hosts: Hosts, program: Program, options: list[str]
) -> None:
    client = hosts[0].start(program("browser"))
    with Tracing(*options) as tracing:
        for _ in range(3):
            assert client.ask("refused", SERVER["4"], 7) == "ConnectionRefusedError"
        found = tracing.stop()
    (edge,) = [edge for edge in of_port(found, 7) if edge["netns"] == hosts[0].netns]
    assert (edge["failed"], edge["opened"]) == ({"ECONNREFUSED": 3}, 0)


def test_events_without_room_are_counted_as_lost(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("resolver"))
    client = hosts[0].start(program("browser"))
    with Tracing(*STREAM, "--buffer", "1") as tracing:
        port = int(server.ask("bind", SERVER["4"], 5356))
        tracing.process.send_signal(signal.SIGSTOP)
        # Four events each, of 96 bytes.
        client.ask("datagrams", "connected", SERVER["4"], port, 4000, 10)
        tracing.process.send_signal(signal.SIGCONT)
        found = tracing.stop()
    lost = found["completeness"]["lost_events"]
    counted = sum(edge["packets_sent"] + edge["packets_received"] for edge in of_port(found, port))
    assert not found["complete"]
    # Other programs of this machine may have lost some, too.
    assert lost > 0
    assert counted < 4 * 4000 <= counted + lost


def follow(tracer: "subprocess.Popen[str]", done: Callable[[dict[str, Any]], bool]) -> None:
    assert tracer.stdout
    for line in tracer.stdout:
        if done(json.loads(line)):
            return
    raise AssertionError("the tracer exited")


def test_polling_sees_connections_that_stay(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"]))
    client.ask("open", "old", SERVER["4"], port)
    client.ask("exchange", "old", 5000)
    command = [native("bin", "tare-map"), "--method", "poll", "--jsonl", "--interval", "50ms"]
    expected = {"client": ("browser", client.pid), "server": ("shop", server.pid)}

    def counts(found: dict[str, Any], role: str) -> tuple[int, ...]:
        (edge,) = of_port(found, port, role)
        assert (edge["program"], edge["pid"]) == expected[role]
        assert edge["direction"] == "listener"
        names = ("found", "opened", "closed", "active", "bytes_sent", "bytes_received")
        return tuple(edge[name] for name in names)

    def both(*numbers: int) -> Callable[[dict[str, Any]], bool]:
        return lambda found: all(counts(found, role) == numbers for role in expected)

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
        try:
            follow(tracer, both(1, 0, 0, 1, 0, 0))
            client.ask("open", "new", SERVER["4"], port)
            client.ask("exchange", "new", 300)
            follow(tracer, both(1, 1, 0, 2, 300, 300))
            client.ask("exchange", "old", 200)
            follow(tracer, both(1, 1, 0, 2, 500, 500))
            client.ask("close", "new")
            follow(tracer, both(1, 1, 1, 1, 500, 500))
        finally:
            tracer.kill()


HEADLESS = """
import ctypes, os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
def go_on():
    # /proc/self is the process, of which the first thread becomes a zombie.
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
        pass
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize("method", ["aggregate", "poll"])
def test_a_program_whose_first_thread_has_exited_has_its_connections(method: str) -> None:
    """Its folder in /proc shows no descriptors."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["python3", "-c", HEADLESS], stdin=pipe, stdout=pipe, text=True) as one:
        assert one.stdout is not None
        port = int(one.stdout.readline())
        with Tracing("--method", method) as tracing:
            found = tracing.stop()
    edges = {edge["role"]: (edge["program"], edge["pid"]) for edge in of_port(found, port)}
    assert set(edges) == {"client", "server"}
    names = {name for name, _ in edges.values()}
    assert len(names) == 1
    assert names.pop().startswith("python3")
    assert {pid for _, pid in edges.values()} == {one.pid}


def test_kernel_without_btf_is_polled() -> None:
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"']
    command = [*hidden, "sh", native("bin", "tare-map"), "--duration", "10ms", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert json.loads(done.stdout)["method"] == "poll"
    assert "using --method poll, because this kernel has no BTF" in done.stderr
    command += ["--method", "bundle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no BTF (/sys/kernel/btf/vmlinux)" in done.stderr
