# SPDX-License-Identifier: Apache-2.0
"""Names of programs whose executables have the same inode."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host, executable
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Tracing, of_port
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]


def another_name(first: Path) -> Path:
    """Of the same file."""
    second = first.with_name("crawler")
    os.link(first, second)
    return second


def new_name(first: Path) -> Path:
    return first.rename(first.with_name("crawler"))


@pytest.mark.parametrize("rename", [another_name, new_name])
@pytest.mark.parametrize("method", ["bundle", "aggregate", "stream"])
def test_programs_with_one_inode_have_their_own_names(
    hosts: Hosts, tmp_path: Path, method: str, rename: Callable[[Path], Path]
) -> None:
    server = hosts[1].start(executable(tmp_path, "shop"))
    first = executable(tmp_path, "browser")
    with Tracing("--method", method) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        datagram_port = int(server.ask("bind", SERVER["4"]))
        names: list[tuple[Callable[[Path], Path], int]] = [(Path, 2), (rename, 3)]
        for name, count in names:
            client = hosts[0].start(name(first))
            client.ask("short", SERVER["4"], port, count, 100)
            client.ask("datagrams", "connected", SERVER["4"], datagram_port, count, 10)
            client.process.kill()
            client.process.wait()
        wait_for(lambda: all_closed(hosts))
        found = tracing.stop()
    opened = {edge["program"]: edge["opened"] for edge in of_port(found, port, "client")}
    assert opened == {"browser": 2, "crawler": 3}
    sent = {
        edge["program"]: edge["packets_sent"] for edge in of_port(found, datagram_port, "client")
    }
    assert sent == {"browser": 2, "crawler": 3}
