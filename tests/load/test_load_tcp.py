# SPDX-License-Identifier: Apache-2.0
"""Over TCP tare-load records what Redis counted, and a hostile service takes no memory of it."""

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.load.conftest import TARE_LOAD, Measure, most_kib, wait_for_port
from tests.waiting import SECONDS

from tare.lab.environments.ports import free_port

GET = ["--send", r"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "--reply", "resp"]
LEEWAY = 4 * 1024
"""KiB."""
BLOCK = 1 << 16


@dataclass
class Redis:
    """A running server."""

    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def said(self, command: str) -> str:
        """What it answers to a command."""
        with closing(socket.create_connection(("127.0.0.1", self.port), SECONDS)) as connection:
            connection.sendall(f"{command}\r\nQUIT\r\n".encode())
            return b"".join(iter(lambda: connection.recv(BLOCK), b"")).decode()

    def calls(self, command: str) -> int:
        """How often it has carried a command out."""
        found = re.search(rf"cmdstat_{command}:calls=(\d+)", self.said("INFO commandstats"))
        return int(found[1]) if found else 0


@contextmanager
def serving(folder: Path) -> Iterator[Redis]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    port = free_port("127.0.0.1")
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    with subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port)
            yield Redis(port)
        finally:
            process.kill()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Redis]:
    with serving(tmp_path) as server:
        yield server


@pytest.mark.parametrize(
    "load",
    [
        ["--requests", "700"],
        ["--requests", "700", "--users", "5", "--threads", "2"],
        ["--requests", "700", "--users", "5", "--threads", "2", "--pipeline", "7"],
        ["--requests", "100", "--connection", "per-request"],
        ["--duration", "300ms", "--users", "3", "--pipeline", "16"],
        ["--duration", "300ms", "--mode", "open", "--rate", "1000"],
        ["--duration", "300ms", "--mode", "open", "--rate", "20000", "--pipeline", "8"],
        ["--duration", "300ms", "--mode", "constant", "--rate", "500", "--users", "4"],
    ],
    ids=" ".join,
)
def test_every_request_that_redis_counted_is_recorded(
    redis: Redis, measure: Measure, load: list[str]
) -> None:
    assert redis.said("SET key value").startswith("+OK")
    measured = measure(redis.address, *GET, *load, protocol="tcp")

    assert redis.calls("get") == len(measured.samples)
    target = measured.summary["targets"][0]
    assert (target["requests"], target["errors"]) == (len(measured.samples), 0)
    assert [row["seq"] for row in measured.samples] == list(range(len(measured.samples)))
    assert {
        (row["condition"], row["source"], row["ok"], row["status"], row["error"], row["bytes"])
        for row in measured.samples
    } == {("default", "client", True, 0, None, len("$5\r\nvalue\r\n"))}
    assert all(row["intended_ns"] <= row["start_ns"] for row in measured.samples)


def test_targets_have_their_slices_in_turn(redis: Redis, other: Redis, measure: Measure) -> None:
    targets = ["--target", f"one={redis.address}", "--target", f"two={other.address}"]
    load = ["--duration", "400ms", "--users", "2", "--pipeline", "4"]
    measured = measure(*targets, *GET, *load, protocol="tcp")

    counted = {"one": redis.calls("get"), "two": other.calls("get")}
    slices: dict[int, set[str]] = {}
    for row in measured.samples:
        slices.setdefault(row["slice"], set()).add(row["condition"])
    assert all(len(conditions) == 1 for conditions in slices.values())
    for name, calls in counted.items():
        assert calls == sum(row["condition"] == name for row in measured.samples) > 0


@pytest.mark.parametrize(
    ("command", "errors"),
    [
        ("INCR key", {"status": 9}),
        ("""EVAL "return {redis.pcall('INCR', 'key'), 1}" 0""", {}),
    ],
)
def test_only_a_reply_that_is_an_error_itself_is_one(
    redis: Redis, measure: Measure, command: str, errors: dict[str, int]
) -> None:
    redis.said("SET key value")
    send = ["--send", rf"{command}\r\n", "--reply", "resp", "--requests", "9"]
    target = measure(redis.address, *send, protocol="tcp").summary["targets"][0]
    assert target["errors_by_kind"] == errors


HOSTILE = {
    "an endless line": (b"+", b"x" * BLOCK),
    "endless nesting": (b"", b"*1\r\n" * (BLOCK // 4)),
    "endless elements": (b"*100000000\r\n", b":1\r\n" * (BLOCK // 4)),
    "an array that does not come": (b"*1000000000\r\n", b""),
    "a string that does not come": (b"$500000000\r\n", b""),
    "endless pushes": (b"", b">1\r\n+x\r\n" * (BLOCK // 8)),
}


@contextmanager
def hostile(first: bytes, more: bytes) -> Iterator[str]:
    """A service that sends this after each first request, and the second part without end."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if connection.recv(BLOCK):
                connection.sendall(first)
                while more:
                    connection.sendall(more)
                connection.recv(BLOCK)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=[listener], daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _most_kib(address: str) -> int:
    """The most memory that is resident at a time during some requests."""
    load = ["--users", "4", "--requests", "40", "--warmup", "0s", "--timeout", "200ms"]
    command = [TARE_LOAD, "tcp", address, *GET, *load, "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True) as process:
        most = most_kib(process)
    assert process.returncode in (0, 1)  # 1 where no request succeeded
    return most


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_service_announces_or_sends_takes_no_memory(name: str) -> None:
    with hostile(b"+OK\r\n", b"") as address:
        usual = _most_kib(address)
    with hostile(*HOSTILE[name]) as address:
        most = _most_kib(address)
    print(f"{usual} KiB usually, {most} KiB with {name}")
    assert most <= usual + LEEWAY
