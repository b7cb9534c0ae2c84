# SPDX-License-Identifier: Apache-2.0
"""A rule that blocks resets the connection, for the program and for its peer."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.hook.conftest import Compile
from tests.hook.hooked import COMMAND, hooked, rules
from tests.waiting import SECONDS

SCRIPT = """
import errno, socket, sys
def said(call, *arguments):
    try:
        print(call.__name__, call(*arguments))
    except OSError as error:
        print(call.__name__, errno.errorcode[error.errno])
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
"""
# Rules and script -> the process, and the server's end of its connection.
Client = Callable[[str, str], tuple[subprocess.Popen[str], socket.socket]]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A listening socket outside the hook."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SECONDS)
        yield listening


@pytest.fixture
def client(server: socket.socket, tmp_path: Path) -> Iterator[Client]:
    """Starts a script under rules, connected to the server; what it starts ends with the test."""
    with ExitStack() as started:

        def start(text: str, script: str) -> tuple[subprocess.Popen[str], socket.socket]:
            (tmp_path / "rules.toml").write_text(text)
            options = ["--rules", str(tmp_path / "rules.toml")]
            command = [COMMAND, *options, "--", sys.executable, "-S", "-c", SCRIPT + script]
            process = subprocess.Popen(
                [*command, str(server.getsockname()[1])],
                stdout=subprocess.PIPE,
                text=True,
            )
            started.enter_context(process)
            started.callback(process.terminate)
            connection, _ = server.accept()
            started.enter_context(connection)
            connection.settimeout(SECONDS)
            return process, connection

        yield start


def test_what_comes_in(client: Client) -> None:
    script = """
said(connection.recv, 3); said(connection.recv, 99); said(connection.recv, 99)
said(connection.send, b"more")
print(connection.fileno() >= 0)
said(connection.close)
"""
    process, peer = client(rules("attack", action="block"), script)
    peer.sendall(b"an attack")
    with pytest.raises(ConnectionResetError):
        peer.recv(1)
    out, _ = process.communicate(timeout=SECONDS)
    reset = ["recv ECONNRESET", "recv ECONNRESET", "send ECONNRESET", "True", "close None"]
    assert out.splitlines() == ["recv b'an '", *reset]


def test_what_goes_out_never_leaves(client: Client) -> None:
    script = """
said(connection.send, b"fine, att"); said(connection.send, b"ack"); said(connection.recv, 9)
"""
    text = rules("attack", direction="out", action="block")
    process, peer = client(text, script)
    received = b""
    with suppress(ConnectionResetError):
        while part := peer.recv(99):
            received += part
        pytest.fail("the connection ended without a reset")
    out, _ = process.communicate(timeout=SECONDS)
    assert received in (b"", b"fine, att")
    assert out.splitlines() == ["send 9", "send ECONNRESET", "recv ECONNRESET"]


def test_another_connection_goes_on_under_the_same_number(
    server: socket.socket, client: Client
) -> None:
    script = """
said(connection.recv, 99)
number = connection.fileno()
connection.close()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(connection.fileno() == number)
said(connection.recv, 99)
"""
    process, peer = client(rules("attack", action="block"), script)
    peer.sendall(b"attack")
    again, _ = server.accept()
    with again:
        again.sendall(b"hello")
        out, _ = process.communicate(timeout=SECONDS)
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


def sent(compile_case: Compile, folder: Path, *calls: str) -> tuple[list[str], str, list[str]]:
    """What `messages` says of each call of sendmmsg, what arrived, and the actions of events."""
    text = rules("attack", scope="all", direction="out", action="block")
    seen = hooked([compile_case("messages"), *calls], folder, text)
    *lines, received = seen.behaviour.out.splitlines()
    said = [line.partition(" = ")[2] for line in lines]
    return said, received, [event["action"] for event in seen.events]


def test_messages_of_a_stream_are_searched_one_behind_the_other(
    compile_case: Compile, tmp_path: Path
) -> None:
    said, received, actions = sent(compile_case, tmp_path, "fine|att|ack")
    assert (said, received, actions) == (["-1, errno 104"], "", ["block"])
    # Each of these alone, behind what was sent before, would be one.
    said, received, actions = sent(compile_case, tmp_path, "at", "x|tack", "fine")
    sums = ["1, errno 4242", "2, errno 4242", "1, errno 4242"]
    assert (said, received, actions) == (sums, "atxtackfine", [])


def test_datagrams_before_one_that_is_withheld_are_sent(
    compile_case: Compile, tmp_path: Path
) -> None:
    said, received, _ = sent(compile_case, tmp_path, "datagrams", "att|ack|an attack|fine", "fine")
    assert (said, received) == (["2, errno 4242", "1, errno 4242"], "attackfine")


def test_descriptors_that_come_with_a_blocked_call_are_closed(
    compile_case: Compile, tmp_path: Path
) -> None:
    seen = hooked([compile_case("rights")], tmp_path, rules("attack", scope="all", action="block"))
    *_, received, lowest = seen.behaviour.out.splitlines()
    assert received.endswith("= -1, errno 104")
    assert lowest.endswith("= 1, errno 4242")


def test_rules_stay_when_tare_hook_is_killed(client: Client) -> None:
    script = """
print(connection.recv(1), flush=True)
said(connection.recv, 99)
"""
    process, peer = client(rules("attack", action="block"), script)
    peer.sendall(b"1")
    assert process.stdout
    assert process.stdout.readline() == "b'1'\n"
    process.kill()
    process.wait()
    peer.sendall(b"attack")
    assert process.stdout.read() == "recv ECONNRESET\n"
