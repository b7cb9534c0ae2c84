# SPDX-License-Identifier: Apache-2.0
"""tare-load over TCP beside redis-benchmark: the same bytes to the same Redis."""

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.cases import Case
from bench.load.peers import number
from bench.load.programs import LOAD_CPU, SERVICE_CPU, Turns, in_turns, output, tare_load
from bench.turns import on_cpu

from tare.lab.environments.ports import free_port

USERS = 50
REQUESTS = 100_000
GET = r"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"


def closed(name: str, port: int, turns: Turns, pipeline: int) -> Case:
    """Requests a second back to back, `pipeline` under way on each connection."""
    load = ["--users", str(USERS), "--pipeline", str(pipeline), "--requests", str(REQUESTS)]
    ours = [f"127.0.0.1:{port}", "--send", GET, "--reply", "resp", *load, "--warmup", "0s"]
    shared = ["-p", str(port), "-c", str(USERS), "-P", str(pipeline), "-n", str(REQUESTS)]
    theirs = on_cpu(LOAD_CPU, ["redis-benchmark", *shared, "--csv", "GET", "key"])
    rates = in_turns(
        {
            "tare load": lambda: float(tare_load(ours, turns.folder, protocol="tcp")["rate"]),
            "redis-benchmark": lambda: number(r'"GET key","([\d.]+)"', output(theirs)),
        },
        turns.pairs * turns.seconds,
    )
    own, others = rates["tare load"], rates["redis-benchmark"]
    return Case(name, "tare load", "redis-benchmark", "requests/s", own, others)


@dataclass(frozen=True)
class Redis:
    """A running server."""

    port: int
    pid: int


@contextmanager
def serving(folder: Path, wrap: Sequence[str] = ()) -> Iterator[Redis]:
    """A Redis with one key of three bytes, on a free port; nothing is written to the disk. `wrap`
    is put before its command."""
    port = free_port("127.0.0.1")
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
    command = on_cpu(SERVICE_CPU, [*wrap, "redis-server", *options, "--loglevel", "warning"])
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _set_key(port)
            yield Redis(port, process.pid)
        finally:
            process.terminate()


def _set_key(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"SET key abc\r\n")
            if connection.recv(64) == b"+OK\r\n":
                return
        time.sleep(0.02)
    raise SystemExit("redis-server does not answer; install it by setup/install-packages test")
