# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs: if both ends are linked, their bytes go through rings; if one is, all is as
without a link."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.link import linked
from tests.link.programs import PYTHON, find_envoy, free_port, nginx, ran, serving
from tests.waiting import SECONDS

ENDS = pytest.mark.parametrize(
    "ends", [("server", "client"), ("server",), ("client",)], ids=["both", "server", "client"]
)
Ends = Collection[str]
# A reply that finds room in a ring, and one that does not: then it depends on how fast the other
# end reads how many bytes go through TCP.
IN_RING, BEYOND_RING = 40_000, 1_024_000


def assert_linked_or_not(
    ends: Ends, links: int | None, *counted: Mapping[str, int], in_ring: bool = True
) -> None:
    """What linked programs counted: `links` connections each if both ends are linked, else none."""
    assert len(ends) == sum(map(bool, counted))
    for counts in filter(None, counted):
        assert (counts["refused"], counts["reset"]) == (0, 0)
        if len(ends) == 1:
            assert counts["links"] == counts["ring_bytes_sent"] == 0
        elif in_ring:
            linked.assert_carried(counts, links)
        else:
            assert counts["links"] == links


def counts(counted: list[linked.Linked]) -> Mapping[str, int]:
    """Of a server that has ended; none if it was not linked."""
    return counted[0].counts if counted else {}


@ENDS
def test_redis_and_its_benchmark(ends: Ends) -> None:
    port = free_port()
    server = ("redis-server", "--port", str(port), "--save", "", "--appendonly", "no")
    load = ("redis-benchmark", "-p", str(port), "-c", "20", "-n", "4000", "-t", "set,get", "--csv")
    with serving(*server, port=port, is_linked="server" in ends) as counted:
        output, client = ran(*load, is_linked="client" in ends)
    assert output.count("\n") == 3
    assert_linked_or_not(ends, 40, client, counts(counted))


def test_redis_saves_in_a_child_while_it_is_linked(tmp_path: Path) -> None:
    port = free_port()
    server = ("redis-server", "--port", str(port), "--dir", str(tmp_path), "--save", "")
    script = f"""
import socket
s = socket.create_connection(("127.0.0.1", {port}))
f = lambda *words: s.sendall(b"".join([b"*%d\\r\\n" % len(words)] + [
    b"$%d\\r\\n%s\\r\\n" % (len(word), word) for word in words]))
def reply():
    got = b""
    while not got.endswith(b"\\r\\n"):
        got += s.recv(1000)
    return got
for number in range(400):
    f(b"SET", b"key%d" % number, b"value")
    assert reply() == b"+OK\\r\\n"
    if number in (50, 150):
        f(b"BGSAVE")
        assert reply()[:1] in b"+-"
f(b"GET", b"key399")
assert reply().endswith(b"value\\r\\n")
"""
    with serving(*server, port=port) as counted:
        client = linked.run(PYTHON, "-c", script, eager=False)
    assert (client.code, client.errors) == (0, "")
    for end in (client, counted[0]):
        linked.assert_carried(end.counts, 1)


@ENDS
@pytest.mark.parametrize("size", [IN_RING, BEYOND_RING])
def test_nginx_and_curl(ends: Ends, size: int, tmp_path: Path) -> None:
    port = free_port()
    body = bytes(range(250)) * (size // 250)
    server = nginx(tmp_path, port, {"file": body, "small": b"small"})
    urls = [f"http://127.0.0.1:{port}/small"] * 20 + [f"http://127.0.0.1:{port}/file"] * 20
    got = [tmp_path / f"got{number}" for number in range(len(urls))]
    words = [word for url, file in zip(urls, got, strict=True) for word in (url, "-o", str(file))]
    with serving(*server, port=port, is_linked="server" in ends) as counted:
        _, client = ran("curl", "-sS", "--fail", *words, is_linked="client" in ends)
    assert got[0].read_bytes() == b"small"
    for file in got[20:]:
        assert hashlib.sha256(file.read_bytes()).digest() == hashlib.sha256(body).digest()
    assert_linked_or_not(ends, 1, client, counts(counted), in_ring=size == IN_RING)


@ENDS
def test_nginx_and_wrk(ends: Ends, tmp_path: Path) -> None:
    port, connections = free_port(), 4
    server = nginx(tmp_path, port, {"file": bytes(700)})
    for seconds in (1, 10, 100):
        load = ("wrk", "-t1", f"-c{connections}", f"-d{seconds}", f"http://127.0.0.1:{port}/file")
        with serving(*server, port=port, is_linked="server" in ends) as counted:
            output, client = ran(*load, is_linked="client" in ends)
        found = re.search(r"(\d+) requests in", output)
        assert found
        assert "Socket errors" not in output
        assert "Non-2xx" not in output
        # The first requests of each connection are TCP's.
        if int(found[1]) > 200 * connections:
            break
    assert_linked_or_not(ends, connections, client, counts(counted))


ENVOY = """
static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: PORT } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: users
          cluster: service
  clusters:
  - name: service
    connect_timeout: 300s
    load_assignment:
      cluster_name: service
      endpoints:
      - lb_endpoints:
        - endpoint:
            address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } }
"""


@pytest.mark.parametrize(
    "programs",
    [
        ("nginx", "envoy", "curl"),
        ("nginx", "envoy"),
        ("envoy", "curl"),
        ("nginx", "curl"),
        ("envoy",),
    ],
    ids=" ".join,
)
def test_envoy_in_front_of_nginx(programs: Collection[str], tmp_path: Path) -> None:
    envoy = find_envoy()
    port, upstream = free_port(), free_port()
    body = bytes(range(250)) * 40
    server = nginx(tmp_path, upstream, {"file": body})
    configuration = tmp_path / "envoy.yaml"
    configuration.write_text(ENVOY.replace("PORT", str(port)).replace("UPSTREAM", str(upstream)))
    proxy = (envoy, "-c", str(configuration), "--concurrency", "1", "--use-dynamic-base-id")
    got = [tmp_path / f"got{number}" for number in range(100)]
    words = [word for file in got for word in (f"http://127.0.0.1:{port}/file", "-o", str(file))]
    with ExitStack() as stack:
        behind = stack.enter_context(serving(*server, port=upstream, is_linked="nginx" in programs))
        between = stack.enter_context(
            serving(*proxy, "--log-level", "error", port=port, is_linked="envoy" in programs)
        )
        _, client = ran("curl", "-sS", "--fail", *words, is_linked="curl" in programs)
    assert all(file.read_bytes() == body for file in got)
    before, after = ({leg, "envoy"} <= {*programs} for leg in ("curl", "nginx"))
    for end, links in (
        (client, before),
        (counts(between), before + after),
        (counts(behind), after),
    ):
        if links:
            linked.assert_carried(end, links)
        elif end:
            assert end["links"] == 0
        assert not end or end["reset"] == end["refused"] == 0


HTTP = """
import sys
from http.server import HTTPServer, BaseHTTPRequestHandler
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = self.path.encode() * 100
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
HTTP_CLIENT = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for number in range(100):
    connection.request("GET", f"/{number}")
    assert connection.getresponse().read() == f"/{number}".encode() * 100
"""
ASYNCIO = """
import asyncio, signal, sys
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line * 3)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 22)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.close)
    await server.serve_forever()
try:
    asyncio.run(main())
except asyncio.CancelledError:
    pass
"""
ASYNCIO_CLIENT = """
import asyncio, sys
most = int(sys.argv[2])
async def talk(name):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]), limit=1 << 22)
    for number in range(60):
        line = b"%d-%d" % (name, number) + b"x" * (number % 30 * most // 30) + b"\\n"
        writer.write(line)
        for _ in range(3):
            assert await reader.readline() == line
    writer.close()
    await writer.wait_closed()
async def main():
    await asyncio.gather(*(talk(name) for name in range(5)))
asyncio.run(main())
"""


@ENDS
def test_pythons_http_server(ends: Ends) -> None:
    port = free_port()
    server = (PYTHON, "-c", HTTP, str(port))
    with serving(*server, port=port, is_linked="server" in ends) as counted:
        _, client = ran(PYTHON, "-c", HTTP_CLIENT, str(port), is_linked="client" in ends)
    assert_linked_or_not(ends, 1, client, counts(counted))


@ENDS
@pytest.mark.parametrize("size", [IN_RING // 3, BEYOND_RING])
def test_asyncio(ends: Ends, size: int) -> None:
    port = free_port()
    server, words = (PYTHON, "-c", ASYNCIO, str(port)), ("-c", ASYNCIO_CLIENT, str(port), str(size))
    with serving(*server, port=port, is_linked="server" in ends) as counted:
        _, client = ran(PYTHON, *words, is_linked="client" in ends)
    assert_linked_or_not(ends, 5, client, counts(counted), in_ring=size < IN_RING)


NO_SSH = """
import contextlib, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        connection, _ = listener.accept()
        # Who only looks whether it listens may reset the connection.
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as received:
            connection.sendall(b"a line before the version\\r\\nSSH-2.0-test\\r\\n")
            if received.readline():
                received.read(int.from_bytes(received.read(4), "big"))
                connection.sendall(b"no key exchange")
                received.read()
"""


@pytest.mark.parametrize("is_linked", [True, False], ids=["both", "client"])
def test_ssh_does_the_same_as_without_a_link(is_linked: bool, tmp_path: Path) -> None:
    if shutil.which("ssh") is None:
        pytest.skip("ssh is not installed")
    port = free_port()
    own = ["-F", "none", "-o", f"UserKnownHostsFile={tmp_path}/known", "-o", "BatchMode=yes"]
    connect = ("ssh", *own, "-p", str(port), "127.0.0.1", "true")
    with serving(PYTHON, "-c", NO_SSH, str(port), port=port, is_linked=is_linked) as counted:
        for command, connections in ((("ssh", "-V"), 0), (connect, 1)):
            plain = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=SECONDS
            )
            run = linked.run(*command, eager=False)
            assert (run.code, run.output) == (plain.returncode, plain.stdout)
            # What it prints of bytes that are no message depends on its random numbers.
            if "-V" in command:
                assert run.errors == plain.stderr.rstrip()
            assert run.errors
            assert plain.stderr
            # Both ends send twice before the server ends the connection: it is linked.
            links = connections if is_linked else 0
            stayed = sum(run.reasons["stayed_tcp"].values())
            assert (run.counts["links"], stayed) == (links, connections - links), run
            assert run.counts["reset"] == 0
    if is_linked:
        assert (counts(counted)["links"], counts(counted)["reset"]) == (1, 0)


def test_peer_that_is_killed_leaves_every_byte_behind() -> None:
    port = free_port()
    server = f"""
import os, socket
listener = socket.create_server(("127.0.0.1", {port}))
while True:
    near, _ = listener.accept()
    if not near.recv(1, socket.MSG_PEEK):
        continue
    for _ in range(10):
        near.sendall(near.recv(100))
    near.sendall(b"last words" * 100)
    os.kill(os.getpid(), 9)
"""
    client = f"""
import socket
far = socket.create_connection(("127.0.0.1", {port}))
for _ in range(10):
    far.sendall(b"question")
    assert far.recv(8) == b"question"
got = b""
while more := far.recv(10000):
    got += more
assert got == b"last words" * 100, got
"""
    with serving(PYTHON, "-c", server, port=port) as counted:
        run = linked.run(PYTHON, "-c", client)
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 1)
    linked.assert_carried(counted[0].counts, 1)
