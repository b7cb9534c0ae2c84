# SPDX-License-Identifier: Apache-2.0
"""A rule that blocks resets the connection, for the program and for its peer."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.hook.hooked import COMMAND, hooked, rules

SCRIPT = """
import errno, socket, sys
def said(call, *arguments):
    try:
        print(call.__name__, call(*arguments))
    except OSError as error:
        print(call.__name__, errno.errorcode[error.errno])
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A listening socket outside the hook."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        yield listening


def client(
    server: socket.socket, folder: Path, text: str, script: str
) -> tuple[subprocess.Popen[str], socket.socket]:
    """A hooked script that is connected to the server, and the server's end."""
    (folder / "rules.toml").write_text(text)
    options = ["--rules", str(folder / "rules.toml")]
    command = [COMMAND, *options, "--", sys.executable, "-S", "-c", SCRIPT + script]
    process = subprocess.Popen(
        [*command, str(server.getsockname()[1])],
        stdout=subprocess.PIPE,
        text=True,
    )
    connection, _ = server.accept()
    connection.settimeout(20)
    return process, connection


def test_what_comes_in(server: socket.socket, tmp_path: Path) -> None:
    script = """
said(connection.recv, 3); said(connection.recv, 99); said(connection.recv, 99)
said(connection.send, b"more")
print(connection.fileno() >= 0)
said(connection.close)
"""
    process, peer = client(server, tmp_path, rules("attack", action="block"), script)
    with peer:
        peer.sendall(b"an attack")
        with pytest.raises(ConnectionResetError):
            peer.recv(1)
    out, _ = process.communicate(timeout=20)
    reset = ["recv ECONNRESET", "recv ECONNRESET", "send ECONNRESET", "True", "close None"]
    assert out.splitlines() == ["recv b'an '", *reset]


def test_what_goes_out_never_leaves(server: socket.socket, tmp_path: Path) -> None:
    script = """
said(connection.send, b"fine, att"); said(connection.send, b"ack"); said(connection.recv, 9)
"""
    text = rules("attack", direction="out", action="block")
    process, peer = client(server, tmp_path, text, script)
    received = b""
    with peer, suppress(ConnectionResetError):
        while part := peer.recv(99):
            received += part
        pytest.fail("the connection ended without a reset")
    out, _ = process.communicate(timeout=20)
    assert received in (b"", b"fine, att")
    assert out.splitlines() == ["send 9", "send ECONNRESET", "recv ECONNRESET"]


def test_another_connection_goes_on_under_the_same_number(
    server: socket.socket, tmp_path: Path
) -> None:
    script = """
said(connection.recv, 99)
number = connection.fileno()
connection.close()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(connection.fileno() == number)
said(connection.recv, 99)
"""
    process, peer = client(server, tmp_path, rules("attack", action="block"), script)
    peer.sendall(b"attack")
    again, _ = server.accept()
    again.sendall(b"hello")
    out, _ = process.communicate(timeout=20)
    peer.close()
    again.close()
    assert out.splitlines() == ["recv ECONNRESET", "True", "recv b'hello'"]


def test_a_datagram_is_withheld_alone(tmp_path: Path) -> None:
    script = """
import socket
def said(call, *arguments):
    try:
        print(call(*arguments))
    except OSError as error:
        print(type(error).__name__)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
said(a.send, b"attack"); said(a.send, b"fine"); said(b.recv, 99)
"""
    text = rules("attack", scope="all", direction="out", action="block")
    seen = hooked([sys.executable, "-S", "-c", script], tmp_path, text)
    assert seen.behaviour.out.splitlines() == ["ConnectionResetError", "4", "b'fine'"]
    assert [event["action"] for event in seen.events] == ["block"]


def test_rules_stay_when_tare_hook_is_killed(server: socket.socket, tmp_path: Path) -> None:
    script = """
print(connection.recv(1), flush=True)
said(connection.recv, 99)
"""
    process, peer = client(server, tmp_path, rules("attack", action="block"), script)
    with peer:
        peer.sendall(b"1")
        assert process.stdout
        assert process.stdout.readline() == "b'1'\n"
        process.kill()
        process.wait()
        peer.sendall(b"attack")
        assert process.stdout.read() == "recv ECONNRESET\n"
