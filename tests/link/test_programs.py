# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs, both ends linked: their bytes go through rings."""

import hashlib
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.link import linked
from tests.waiting import SECONDS, wait_for

PYTHON = "/usr/bin/python3"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def serving(*command: str, port: int) -> Iterator[list[linked.Linked]]:
    """A linked server; what it counted is in the list when it has ended."""
    process = linked.start(*command, eager=False)
    counted: list[linked.Linked] = []
    try:

        def listens() -> bool:
            assert process.poll() is None, process.communicate()
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
            return True

        wait_for(listens)
        yield counted
    finally:
        process.terminate()
        counted.append(linked.ended(process))


def test_redis_and_its_benchmark() -> None:
    port = free_port()
    server = ("redis-server", "--port", str(port), "--save", "", "--appendonly", "no")
    load = ("redis-benchmark", "-p", str(port), "-c", "20", "-n", "4000", "-t", "set,get", "--csv")
    with serving(*server, port=port) as counted:
        client = linked.run(*load, eager=False)
    assert client.code == 0
    assert client.output.count("\n") == 3
    assert client.counts["links"] == 40
    assert client.share >= 0.95
    (service,) = counted
    assert service.counts["links"] == 40
    assert service.share >= 0.95
    assert service.counts["reset"] == client.counts["reset"] == 0


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
for number in range(200):
    f(b"SET", b"key%d" % number, b"value")
    assert reply() == b"+OK\\r\\n"
    if number in (50, 150):
        f(b"BGSAVE")
        assert reply()[:1] in b"+-"
f(b"GET", b"key199")
assert reply().endswith(b"value\\r\\n")
"""
    with serving(*server, port=port) as counted:
        client = linked.run(PYTHON, "-c", script, eager=False)
    assert (client.code, client.errors) == (0, "")
    assert client.share >= 0.9
    assert counted[0].counts["ring_sends"] > 100


def test_nginx_and_curl(tmp_path: Path) -> None:
    port = free_port()
    body = bytes(range(256)) * 4000
    (tmp_path / "file").write_bytes(body)
    (tmp_path / "small").write_text("small")
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr;"
        f"events {{}} http {{ access_log off; sendfile off; server {{"
        f" listen 127.0.0.1:{port}; root {tmp_path}; }} }}"
    )
    small = [f"http://127.0.0.1:{port}/small"] * 20
    outputs = [word for url in small for word in (url, "-o", "/dev/null")]
    large = [f"http://127.0.0.1:{port}/file", "-o", str(tmp_path / "got")]
    server = ("nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path))
    with serving(*server, port=port) as counted:
        client = linked.run("curl", "-sS", "--fail", *outputs, *large, eager=False)
    assert (client.code, client.errors) == (0, "")
    got = (tmp_path / "got").read_bytes()
    assert hashlib.sha256(got).digest() == hashlib.sha256(body).digest()
    assert client.counts["links"] == 1
    assert client.counts["ring_sends"] > 10
    assert counted[0].counts["ring_bytes_sent"] > 0


def test_server_alone_is_linked() -> None:
    port = free_port()
    with serving("redis-server", "--port", str(port), "--save", "", port=port) as counted:
        command = ["redis-benchmark", "-p", str(port), "-c", "5", "-n", "500", "-t", "ping", "-q"]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    assert counted[0].counts["links"] == 0


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
for number in range(50):
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
async def talk(name):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]), limit=1 << 22)
    for number in range(30):
        line = b"%d-%d" % (name, number) + b"x" * (number * 9000) + b"\\n"
        writer.write(line)
        for _ in range(3):
            assert await reader.readline() == line
    writer.close()
    await writer.wait_closed()
async def main():
    await asyncio.gather(*(talk(name) for name in range(5)))
asyncio.run(main())
"""


def test_pythons_http_server() -> None:
    port = free_port()
    with serving(PYTHON, "-c", HTTP, str(port), port=port) as counted:
        client = linked.run(PYTHON, "-c", HTTP_CLIENT, str(port), eager=False)
    assert (client.code, client.errors) == (0, "")
    assert client.share >= 0.9
    assert counted[0].share >= 0.9


def test_asyncio() -> None:
    port = free_port()
    with serving(PYTHON, "-c", ASYNCIO, str(port), port=port) as counted:
        client = linked.run(PYTHON, "-c", ASYNCIO_CLIENT, str(port), eager=False)
    assert (client.code, client.errors) == (0, "")
    assert client.counts["links"] == counted[0].counts["links"] == 5
    assert client.counts["ring_sends"] > 100
    assert counted[0].counts["reset"] == 0


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
    assert run.counts["ring_bytes_received"] >= 1000
    assert counted[0].counts["links"] == 1
