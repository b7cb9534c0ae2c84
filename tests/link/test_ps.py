# SPDX-License-Identifier: Apache-2.0
"""`tare link ps` and `tare ps` list linked programs and their connections."""

import json
import subprocess
from typing import Any

from tests.in_process import tare
from tests.link.linked import LINK
from tests.waiting import SECONDS

TALK = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
for _ in range(50):
    near.sendall(b"request")
    assert far.recv(100) == b"request"
    far.sendall(b"reply")
    assert near.recv(100) == b"reply"
print(near.getsockname()[1], far.getsockname()[1], flush=True)
sys.stdin.readline()
far.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
print(flush=True)
sys.stdin.readline()
near.close()
print(flush=True)
sys.stdin.readline()
"""


def test_links_are_listed_with_what_they_carried() -> None:
    process = subprocess.Popen(
        [LINK, "--eager", "--", "/usr/bin/python3", "-c", TALK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def listed() -> dict[str, dict[str, Any]]:
        done = subprocess.run([LINK, "ps", "--json"], check=True, capture_output=True, text=True)
        (run,) = (run for run in json.loads(done.stdout)["runs"] if run["pid"] == process.pid)
        assert run["command"].startswith("/usr/bin/python3 -c")
        assert run["counts"]["links"] == 2
        assert run["counts"]["stayed_tcp_because"] == {}
        return {link["local"]: link for link in run["links"]}

    def goes_on() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()

    try:
        near, far = (f"127.0.0.1:{port}" for port in process.stdout.readline().split())
        links = listed()
        assert links.keys() == {near, far}
        assert (links[near]["remote"], links[far]["remote"]) == (far, near)
        for link in links.values():
            assert (link["state"], link["upgrades"], link["downgrades"]) == ("shared memory", 1, 0)
        sent, received = links[near]["ring_bytes_sent"], links[near]["messages_received"]
        assert sent == links[far]["ring_bytes_received"]
        assert int(sent) >= 7 * 48
        assert int(received) >= 48
        table = subprocess.run([LINK, "ps"], check=True, capture_output=True, text=True).stdout
        assert f" {near} " in table
        (program,) = (
            listing
            for listing in json.loads(tare("ps", "--json").stdout)["programs"]
            if listing["collector"] == process.pid
        )
        assert (program["kind"], program["pid"]) == ("link", links[near]["pid"])

        goes_on()
        links = listed()
        code = "socket_option"
        why = "a socket option that is not supported"
        assert links[far]["state"] == f"TCP for good, by this end: {why}"
        assert links[near]["state"] == f"TCP for good, by the other end: {why}"
        assert (links[far]["left_because"], links[far]["other_end_left_because"]) == (code, None)
        assert (links[near]["left_because"], links[near]["other_end_left_because"]) == (None, code)
        assert links[near]["downgraded_because"] == links[far]["downgraded_because"] == code
        table = subprocess.run([LINK, "ps"], check=True, capture_output=True, text=True).stdout
        assert f"1 connections that went back to TCP for good {why}" in " ".join(table.split())
        goes_on()
        assert listed().keys() == {far}
        process.stdin.close()
        process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()
