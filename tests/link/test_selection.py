# SPDX-License-Identifier: Apache-2.0
"""Which connections are linked: --only, --except and --allow-uid, and what TARE_LINK_LOG has."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.link.linked import LINK, assert_carried
from tests.link.programs import free_port
from tests.waiting import SECONDS

PYTHON = "/usr/bin/python3"
NOBODY = 65534
# A connection over IPv4 and one over IPv6; prints their ports.
BOTH = """
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.create_server((address, 0), family=family)
    near = socket.create_connection(listener.getsockname()[:2])
    far, _ = listener.accept()
    print(listener.getsockname()[1])
    for _ in range(50):
        near.sendall(b"request")
        assert far.recv(100) == b"request"
        far.sendall(b"reply")
        assert near.recv(100) == b"reply"
"""


def linked(*options: str, log: Path) -> tuple[list[str], int]:
    """The lines of the log, and how many ends were linked, whose bytes went through rings."""
    log.write_text("")
    done = subprocess.run(
        [LINK, "--eager", "--json", *options, "--", PYTHON, "-c", BOTH],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=log.parent,
        env=os.environ | {"TARE_LINK_LOG": log.name},
    )
    ports = done.stdout.split()
    lines = log.read_text()
    for port, name in zip(ports, ("PORT4", "PORT6"), strict=True):
        lines = lines.replace(f":{port} ", f":{name} ")
    counts = json.loads(done.stderr.splitlines()[-1])
    if counts["links"]:
        assert_carried(counts)
    return lines.splitlines(), counts["links"]


def test_only_and_except_choose_connections_by_either_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines, links = linked(log=log)
    assert links == 4
    assert [line.split()[-1] for line in lines] == ["linked"] * 4
    assert "remote=127.0.0.1:PORT4" in "".join(lines)
    assert "local=[::1]:PORT6" in "".join(lines)
    for options, left in (
        (["--only", "::1"], "127.0.0.1:"),
        (["--except", "[::1]"], "[::1]:"),
        (["--only", "127.0.0.1", "--only", "1"], "[::1]:"),
    ):
        lines, links = linked(*options, log=log)
        assert links == 2
        excluded = [line for line in lines if "stays TCP: excluded by --only or --except" in line]
        assert len(excluded) == 2
        assert all(f"local={left}" in line for line in excluded), excluded
    assert linked("--only", "127.0.0.1", "--except", "127.0.0.1", log=log)[1] == 0


TWO = """
import socket, sys
for port in map(int, sys.argv[1:]):
    listener = socket.create_server(("127.0.0.1", port))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    for _ in range(50):
        near.sendall(b"request")
        assert far.recv(100) == b"request"
        far.sendall(b"reply")
        assert near.recv(100) == b"reply"
"""


@pytest.mark.parametrize("option", ["--only", "--except"])
def test_address_with_a_port_chooses_connections_to_one_of_two_servers(
    option: str, tmp_path: Path
) -> None:
    ports = [str(free_port()) for _ in range(2)]
    log = tmp_path / "log"
    done = subprocess.run(
        [
            LINK,
            "--eager",
            "--json",
            option,
            f"127.0.0.1:{ports[0]}",
            "--",
            PYTHON,
            "-c",
            TWO,
            *ports,
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | {"TARE_LINK_LOG": str(log)},
    )
    assert_carried(json.loads(done.stderr.splitlines()[-1]), 2)
    chosen, other = ports if option == "--only" else reversed(ports)
    for line in log.read_text().splitlines():
        assert (f"127.0.0.1:{chosen} " in line) == line.endswith(" linked"), line
        assert (f"127.0.0.1:{other} " in line) == ("excluded by --only or --except" in line), line


SERVER = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
far, _ = listener.accept()
while request := far.recv(100):
    far.sendall(request)
"""
CLIENT = """
import socket, sys
near = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(50):
    near.sendall(b"request")
    assert near.recv(100) == b"request"
"""


@pytest.mark.parametrize("allowed", [True, False], ids=["both", "one side"])
def test_users_are_linked_if_both_sides_allow_it(allowed: bool) -> None:
    if os.geteuid():
        pytest.skip("only root can start programs of another user")
    options = ["--allow-uid", "0"] if allowed else []
    server = subprocess.Popen(
        [LINK, "--eager", "--json", *options, "--", PYTHON, "-c", SERVER],
        user=NOBODY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        command = [LINK, "--eager", "--json", "--allow-uid", str(NOBODY)]
        client = subprocess.run(
            [*command, "--", PYTHON, "-c", CLIENT, port],
            check=True,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        _, errors = server.communicate(timeout=SECONDS)
    finally:
        server.kill()
    ends = [json.loads(end) for end in (client.stderr, errors)]
    reasons = {reason for end in ends for reason in end["stayed_tcp_because"]}
    assert ("other_user" in reasons) != allowed
    for counts in ends:
        assert counts["refused"] == counts["reset"] == 0
        # The end that allows the other makes a link before the other refuses it.
        if allowed:
            assert_carried(counts, 1)
        assert (counts["ring_bytes_sent"] == 0) != allowed
