# SPDX-License-Identifier: Apache-2.0
"""Edges of connections whose bytes `tare link` carries: the kernel does not count those."""

import csv
import json
import re
import subprocess
from typing import Any

from tests.link import linked
from tests.map.tracing import of_port
from tests.waiting import SECONDS

from tare.native import native

PROGRAM = f"""{linked.PAIR}
import sys
near, far = linked()
print(near.getpeername()[1], flush=True)
sys.stdin.readline()
"""


def traced(port: int, *options: str) -> tuple[list[dict[str, Any]], str]:
    """Both edges of this port, and the table's lines of it."""
    command = [native("bin", "tare-map"), "--duration", "100ms", *options]
    printed = subprocess.check_output([*command, "--json"], text=True, timeout=SECONDS)
    table = subprocess.check_output(command, text=True, timeout=SECONDS)
    found = json.loads(printed)
    edges = [edge for role in ("client", "server") for edge in of_port(found, port, role)]
    return edges, "\n".join(line for line in table.splitlines() if f" {port} " in line)


def test_bytes_of_linked_connections_are_unknown() -> None:
    command = [linked.LINK, "--eager", "--", "/usr/bin/python3", "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin
        assert program.stdout
        port = int(program.stdout.readline())
        for options in ((), ("--method", "poll")):
            edges, table = traced(port, *options)
            assert [edge["linked"] for edge in edges] == [True, True]
            assert table.count("linked") == 4
        command = [native("bin", "tare-map"), "--duration", "100ms"]
        for option, check in CHECKS.items():
            text = subprocess.check_output([*command, option], text=True, timeout=SECONDS)
            check(text, port)
        program.stdin.close()


def check_csv(text: str, port: int) -> None:
    rows = [row for row in csv.DictReader(text.splitlines()) if row["port"] == str(port)]
    assert [row["role"] for row in rows] in (["client", "server"], ["server", "client"])
    for row in rows:
        assert row["linked"] == "true"
        assert row["active"] == "1"
        # Unknown, and not 0.
        columns = ("bytes_sent", "bytes_received", "packets_sent", "packets_received")
        assert [row[name] for name in columns] == [""] * 4


def check_dot(text: str, port: int) -> None:
    (label,) = re.findall(rf'^  n(\d+) -> n\1 \[label="tcp {port}(.*)"\];$', text, re.M)
    assert label[1] == ", linked"


def check_mermaid(text: str, port: int) -> None:
    (label,) = re.findall(rf'^  n(\d+) -->\|"tcp {port}(.*)"\| n\1$', text, re.M)
    assert label[1] == ", linked"


CHECKS = {"--csv": check_csv, "--dot": check_dot, "--mermaid": check_mermaid}
