# SPDX-License-Identifier: Apache-2.0
"""Pictures of edges, with names that other programs chose."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.map.hosts import Host
from tests.map.test_tcp import SERVER, all_closed
from tests.map.tracing import Tracing, of_port
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]


HOSTILE = 'a"\n\x1b[31m\r,=\\\u202e'


def traced(options: list[str], hosts: Hosts, program: Program, name: str) -> tuple[str, int]:
    """What the tracer prints for a client with this name, and the port of its server."""
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program(name))
    with Tracing(*options, json=False) as tracing:
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
    text, port = traced(["--dot"], hosts, program, name)
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
    text, port = traced(["--mermaid"], hosts, program, name)
    assert text.startswith("flowchart LR\n")
    (client,) = re.findall(rf'^  (n\d+)\["{re.escape(label)}"\]$', text, re.M)
    (server,) = re.findall(r'^  (n\d+)\["shop"\]$', text, re.M)
    assert f'  {client} -->|"tcp {port}, 400 B"| {server}\n' in text


def test_table_has_one_printable_line_for_a_hostile_name(hosts: Hosts, program: Program) -> None:
    text, port = traced([], hosts, program, HOSTILE)
    own = [line for line in text.splitlines() if f" {port} " in line]
    (client,) = [line for line in own if " -> " in line]
    assert len(own) == 2
    assert client.startswith('a"\\x0a\\x1b[31m\\x0d,=')
    assert all(character.isprintable() for line in text.split("\n") for character in line)
    # The columns stay where they are.
    assert client.index(" -> ") == own[1 - own.index(client)].index(" <- ")


def test_lines_of_json_keep_a_hostile_name(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program(HOSTILE))
    port = int(server.ask("listen", SERVER["4"]))
    client.ask("open", "one", SERVER["4"], port)
    command = [native("bin", "tare-map"), "--jsonl", "--interval", "20ms", "--duration", "100ms"]
    lines = subprocess.check_output(command, text=True, timeout=SECONDS).split("\n")
    assert lines.pop() == ""
    for line in lines:
        # Nothing in it changes how a terminal or an editor shows it.
        assert line.isprintable()
        (edge,) = of_port(json.loads(line), port, "client")
        assert edge["program"] == HOSTILE
    (edge,) = of_port(json.loads(lines[-1]), port, "server")
    assert edge["program"] == "shop"
