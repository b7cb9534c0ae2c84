# SPDX-License-Identifier: Apache-2.0
"""What a tracer leaves behind, and two at a time."""

import json
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.map.hosts import Host
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Tracing, of_port
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]


def descriptors_of_bpf(pid: int) -> set[str]:
    """Identifiers of the programs that a process holds."""
    found = set()
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        for line in file.read_text().splitlines():
            if line.startswith("prog_id:"):
                found.add(line.split()[1])
    return found


def programs_in_the_kernel() -> set[str]:
    listing = subprocess.check_output(["bpftool", "--json", "prog", "show"])
    return {str(program["id"]) for program in json.loads(listing)}


def test_killed_tracer_leaves_no_program() -> None:
    with Tracing() as tracing:
        mine = descriptors_of_bpf(tracing.process.pid)
        assert mine
        assert mine <= programs_in_the_kernel()
        tracing.process.send_signal(signal.SIGKILL)
        tracing.process.wait(timeout=SECONDS)
    # The kernel frees programs when no CPU can be running them any more.
    wait_for(lambda: not mine & programs_in_the_kernel(), "the end of the programs")


def test_two_tracers_find_the_same(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    with Tracing() as first, Tracing() as second:
        port = int(server.ask("listen", SERVER["4"]))
        client.ask("short", SERVER["4"], port, 20, 300)
        wait_for(lambda: all_closed(hosts))
        found = [tracing.stop() for tracing in (first, second)]
    for edges in (of_port(listing, port) for listing in found):
        counts = [(edge["opened"], edge["closed"], edge["bytes_sent"]) for edge in edges]
        assert counts == [(20, 20, 6000)] * 2


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
