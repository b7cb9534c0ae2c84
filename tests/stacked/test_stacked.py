# SPDX-License-Identifier: Apache-2.0
"""Every subset of the layers that live in a program, in every order: the same answers, and each
layer sees all that it sees alone."""

import json
import socket
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest
from tests.hook.hooked import COMMAND, LIBRARY, rules
from tests.hook.programs.ways import free_port, need, serving
from tests.hook.programs.web import web
from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import INCLUDE, LIBRARIES
from tests.once import OUT, compiled
from tests.waiting import SECONDS

ORDERS = [order for size in (1, 2) for order in permutations(("hook", "log"), size)]
WORD = "greeting"
Command = Sequence[str | Path]
Serve = Callable[[Path, Callable[[Command], Command]], list[bytes]]


def library() -> Path:
    """A preload library that logs how many bytes were received, readable for every user."""
    source = Path(__file__).with_name("logging.c")
    words = ["-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", f"-I{INCLUDE}", source]
    built = compiled("liblogging.so", "cc", *words, "-o", OUT, LIBRARIES / "libtare_log.a")
    built.parent.parent.chmod(0o711)
    built.parent.chmod(0o711)
    return built


def exchanged(port: int, *requests: bytes) -> list[bytes]:
    """What a server answers to requests, each in a connection of its own."""
    answers = []
    for request in requests:
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answers.append(b"".join(iter(lambda: connection.recv(65536), b"")))
    return answers


PAGES = [f"GET /{path} HTTP/1.0\r\nX: {WORD}\r\n\r\n".encode() for path in ("page", "absent")]
VALUES = [f"SET {WORD} hello\r\n".encode(), f"GET {WORD}\r\n".encode() * 50]


def nginx(folder: Path, wrap: Callable[[Command], Command]) -> list[bytes]:
    port = free_port()
    with web(folder, port, wrap):
        answers = exchanged(port, *PAGES)
    return [answer.partition(b"\r\n\r\n")[2] for answer in answers]


def redis(folder: Path, wrap: Callable[[Command], Command]) -> list[bytes]:
    need("redis-server")
    port = free_port()
    options = ["--bind", "127.0.0.1", "--save", "", "--io-threads", "2", "--dir", str(folder)]
    with serving(wrap(["redis-server", "--port", str(port), *options]), port):
        return exchanged(port, *VALUES)


@pytest.mark.parametrize(
    ("serve", "requests"), [(nginx, PAGES), (redis, VALUES)], ids=["nginx", "redis"]
)
def test_layers_do_not_see_each_other(
    serve: Serve, requests: list[bytes], readable: Path, tmp_path: Path
) -> None:
    need("cc")
    rules_file = tmp_path / "rules.toml"
    rules_file.write_text(rules(WORD, direction="in"))
    events, log = tmp_path / "events.jsonl", tmp_path / "events.log"
    libraries = {"hook": LIBRARY, "log": library()}
    around: dict[str, Command] = {
        "hook": [COMMAND, "--rules", rules_file, "--events", events, "--"],
        "log": [TARE_LOG, "run", "--out", log, "--"],
    }

    def wrapped(order: Sequence[str], command: Command) -> Command:
        preload = ":".join(str(libraries[layer]) for layer in order)
        outside = [word for layer in order for word in around[layer]]
        return [*outside, "env", f"LD_PRELOAD={preload}", *command]

    expected = serve(readable, lambda command: command)
    assert len(expected) == len(requests)
    assert all(expected)
    for order in ORDERS:
        for file in (events, log):
            file.unlink(missing_ok=True)
        assert serve(readable, partial(wrapped, order)) == expected, order
        if "hook" in order:
            found = [json.loads(line)["keyword"] for line in events.read_text().splitlines()]
            assert found == [WORD] * b"".join(requests).count(WORD.encode()), order
        if "log" in order:
            received = sum(int(row.payload) for row in dump(log))
            assert received == sum(map(len, requests)), order
