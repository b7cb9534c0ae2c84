# SPDX-License-Identifier: Apache-2.0
"""Pictures of edges, with names that other programs chose."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Tracing
from tests.waiting import wait_for

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]


def picture(option: str, hosts: Hosts, program: Program, name: str) -> tuple[str, int]:
    """What the tracer prints for a client with this name, and the port of its server."""
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program(name))
    with Tracing(option, json=False) as tracing:
        port = int(server.ask("listen", SERVER["4"]))
        client.ask("short", SERVER["4"], port, 2, 100)
        wait_for(lambda: all_closed(hosts))
        return tracing.stop_and_read(), port


@pytest.mark.parametrize(
    ("name", "label"),
    [("browser", "browser"), ('a"];b->c\\N&lt;\n', 'a\\"];b->c\\\\N&amp;lt;\\\\x0a')],
)
def test_dot_has_an_arrow_from_client_to_server(
    hosts: Hosts, program: Program, name: str, label: str
) -> None:
    text, port = picture("--dot", hosts, program, name)
    assert text.startswith("digraph map {")
    (client,) = re.findall(rf'^  (n\d+) \[shape=box, label="{re.escape(label)}"\];$', text, re.M)
    (server,) = re.findall(r'^  (n\d+) \[shape=box, label="shop"\];$', text, re.M)
    assert f'  {client} -> {server} [label="tcp {port}, 400 B"];\n' in text


@pytest.mark.parametrize(
    ("name", "label"), [("browser", "browser"), ('a"]-->b<i>', "a#34;#93;--#62;b#60;i#62;")]
)
def test_mermaid_has_an_arrow_from_client_to_server(
    hosts: Hosts, program: Program, name: str, label: str
) -> None:
    text, port = picture("--mermaid", hosts, program, name)
    assert text.startswith("flowchart LR\n")
    (client,) = re.findall(rf'^  (n\d+)\["{re.escape(label)}"\]$', text, re.M)
    (server,) = re.findall(r'^  (n\d+)\["shop"\]$', text, re.M)
    assert f'  {client} -->|"tcp {port}, 400 B"| {server}\n' in text
