# SPDX-License-Identifier: Apache-2.0
"""Edges of connections whose bytes `tare link` carries: the kernel does not count those."""

import json
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
        program.stdin.close()
