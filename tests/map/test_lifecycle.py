# SPDX-License-Identifier: Apache-2.0
"""What a tracer leaves behind, and two at a time."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.map.hosts import Host
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Tracing, of_port
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

KINDS = ("prog", "map", "link")


def held_by(pid: int) -> dict[str, set[int]]:
    """Numbers of the programs, maps and links that a process holds."""
    found: dict[str, set[int]] = {kind: set() for kind in KINDS}
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        for line in file.read_text().splitlines():
            kind, _, number = line.partition("_id:")
            if kind in KINDS and number:
                found[kind].add(int(number))
    return found


def in_the_kernel(kind: str) -> set[int]:
    listing = subprocess.check_output(["bpftool", "--json", kind, "show"])
    return {one["id"] for one in json.loads(listing)}


@pytest.mark.parametrize("method", ["bundle", "aggregate", "stream"])
def test_killed_tracer_leaves_no_program_map_or_link(method: str) -> None:
    with Tracing("--method", method) as tracing:
        mine = held_by(tracing.process.pid)
        for kind in KINDS:
            assert mine[kind]
            assert mine[kind] <= in_the_kernel(kind)
        tracing.process.send_signal(signal.SIGKILL)
        tracing.process.wait(timeout=SECONDS)
    # The kernel frees them when no CPU can be running a program any more.
    wait_for(lambda: not any(mine[kind] & in_the_kernel(kind) for kind in KINDS), "their end")


@pytest.mark.parametrize("version", ["4", "6"])
def test_two_tracers_find_the_same(hosts: Hosts, program: Program, version: str) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing() as first, Tracing() as second:
        port = int(server.ask("listen", SERVER[version]))
        resolver = int(server.ask("bind", SERVER[version]))
        client.ask("short", SERVER[version], port, 20, 300)
        for how in ("connected", "unconnected"):
            client.ask("datagrams", how, SERVER[version], resolver, 10, 50)
        wait_for(lambda: all_closed(hosts))
        found = [tracing.stop() for tracing in (first, second)]
    for one in found:
        edges = of_port(one, port)
        counts = [(edge["opened"], edge["closed"], edge["bytes_sent"]) for edge in edges]
        assert counts == [(20, 20, 6000)] * 2
        for role in ("client", "server"):
            edges = of_port(one, resolver, role)
            # A client that is not connected has no local address of its own.
            assert len(edges) == (2 if role == "client" else 1)
            for way in ("sent", "received"):
                assert sum(edge[f"packets_{way}"] for edge in edges) == 20
                assert sum(edge[f"bytes_{way}"] for edge in edges) == 1000


def test_connections_that_come_and_go_during_the_start_have_an_owner_and_an_end(
    hosts: Hosts, program: Program
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"]))
    with ThreadPoolExecutor() as threads:
        connections = threads.submit(client.ask, "short", SERVER["4"], port, 3000, 10)
        with Tracing() as tracing:
            connections.result()
            wait_for(lambda: all_closed(hosts))
            found = tracing.stop()
    edges = of_port(found, port)
    assert {(edge["program"], edge["role"]) for edge in edges} <= {
        ("browser", "client"),
        ("shop", "server"),
    }
    assert [edge["active"] for edge in edges] == [0] * len(edges)


def test_intervals_are_lines_and_the_last_has_everything(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"]))
    client.ask("open", "one", SERVER["4"], port)
    command = [native("bin", "tare-map"), "--jsonl", "--interval", "50ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout
        try:
            lines = [json.loads(tracer.stdout.readline())]
            client.ask("exchange", "one", 1234)
            while of_port(lines[-1], port, "client")[0]["bytes_sent"] < 1234:
                lines.append(json.loads(tracer.stdout.readline()))
            tracer.send_signal(signal.SIGINT)
            lines += [json.loads(line) for line in tracer.stdout]
        finally:
            tracer.kill()
    assert [line["interval"] for line in lines] == list(range(1, len(lines) + 1))
    assert of_port(lines[-1], port, "server")[0]["bytes_received"] == 1234


def test_intervals_during_which_the_tracer_is_stopped_are_missed() -> None:
    command = [native("bin", "tare-map"), "--jsonl", "--interval", "50ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout
        try:
            before = json.loads(tracer.stdout.readline())["missed_intervals"]
            tracer.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            # Of the intervals that end meanwhile, only one can still be printed.
            wait_for(lambda: time.monotonic() > stopped + 0.5, "ten intervals")
            tracer.send_signal(signal.SIGCONT)
            for line in tracer.stdout:
                if json.loads(line)["missed_intervals"] > before:
                    break
            else:
                raise AssertionError("no interval was missed")
        finally:
            tracer.kill()


def test_cost_of_every_program_is_counted(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing("--tracer-stats") as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        client.ask("short", SERVER["4"], port, 20, 300)
        wait_for(lambda: all_closed(hosts))
        stats = tracing.stop()["tracer"]
    # A connection changes its state at least three times at each end.
    assert stats["programs"]["tcp_state"]["runs"] >= 20 * 6
    assert stats["programs"]["tcp_state"]["nanoseconds"] > 0
    # The second where the kernel refuses iterators over maps.
    drains = [stats["programs"].get(name) for name in ("drain", "drain_namespace")]
    assert sum(drain["runs"] for drain in drains if drain) > 0
    assert stats["cpu_seconds"] > 0
