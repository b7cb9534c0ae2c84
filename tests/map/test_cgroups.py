# SPDX-License-Identifier: Apache-2.0
"""Clients in cgroups: an edge belongs to one cgroup and one program."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.map.hosts import Host
from tests.map.hosts import Program as Running
from tests.map.test_tcp import CLIENT, SERVER, all_closed
from tests.map.tracing import Tracing, of_port
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]
OPTIONS = [[], ["--method", "aggregate", "--interval", "20ms"], ["--method", "stream"]]


@pytest.fixture
def cgroups() -> Iterator[list[Path]]:
    """Two new cgroups; what is left in them goes back to the root."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not roots:
        pytest.skip("cgroup2 is not mounted")
    made = [roots[0] / f"tare-map-{os.getpid()}-{name}" for name in ("one", "two")]
    try:
        for folder in made:
            folder.mkdir()
        yield made
    finally:
        for folder in made:
            if folder.exists():
                for pid in (folder / "cgroup.procs").read_text().split():
                    (roots[0] / "cgroup.procs").write_text(pid)
                folder.rmdir()


def put(program: Running, cgroup: Path) -> None:
    """A socket is in the cgroup of the process that makes it."""
    (cgroup / "cgroup.procs").write_text(str(program.pid))


@pytest.mark.parametrize("options", OPTIONS, ids=["bundle", "aggregate", "stream"])
def test_one_program_in_two_cgroups_has_an_edge_in_each(
    hosts: Hosts, program: Program, cgroups: list[Path], options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    clients = [hosts[0].start(program("browser")) for _ in cgroups]
    for client, cgroup in zip(clients, cgroups, strict=True):
        put(client, cgroup)
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        resolver = int(server.ask("bind", SERVER["4"]))
        for number, client in enumerate(clients, 1):
            client.ask("short", SERVER["4"], port, number, 100)
            client.ask("datagrams", "connected", SERVER["4"], resolver, 10 * number, 100)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    paths = [f"/{cgroup.name}" for cgroup in cgroups]
    opened = {edge["cgroup"]: edge["opened"] for edge in of_port(found, port, "client")}
    assert opened == {paths[0]: 1, paths[1]: 2}
    sent = {edge["cgroup"]: edge["packets_sent"] for edge in of_port(found, resolver, "client")}
    assert sent == {paths[0]: 10, paths[1]: 20}
    (edge,) = of_port(found, port, "server")
    assert edge["opened"] == 3
    assert edge["cgroup"] not in paths


@pytest.mark.parametrize("options", OPTIONS, ids=["bundle", "aggregate", "stream"])
def test_two_programs_in_one_cgroup_are_two_edges(
    hosts: Hosts, program: Program, cgroups: list[Path], options: list[str]
) -> None:
    server = hosts[1].start(program("shop"))
    clients = [hosts[0].start(program(name)) for name in ("browser", "crawler")]
    for client in clients:
        put(client, cgroups[0])
    with Tracing(*options) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        for number, client in enumerate(clients, 1):
            client.ask("short", SERVER["4"], port, number, 100)
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    path = f"/{cgroups[0].name}"
    edges = of_port(found, port, "client")
    assert {(edge["program"], edge["cgroup"], edge["opened"]) for edge in edges} == {
        ("browser", path, 1),
        ("crawler", path, 2),
    }
    assert {edge["local"] for edge in edges} == {CLIENT["4"]}


def test_older_clients_have_the_cgroups_in_which_they_connected(
    hosts: Hosts, program: Program, cgroups: list[Path]
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"]))
    for cgroup in cgroups:
        put(client, cgroup)
        client.ask("open", cgroup.name, SERVER["4"], port)
    paths = {f"/{cgroup.name}" for cgroup in cgroups}
    for options in ([], ["--method", "poll"]):
        with Tracing(*options) as tracing:
            found = tracing.stop()
        edges = of_port(found, port, "client")
        assert {edge["cgroup"]: edge["found"] for edge in edges} == dict.fromkeys(paths, 1)
