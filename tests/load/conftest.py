# SPDX-License-Identifier: Apache-2.0
"""Servers on loopback, and what tare-load recorded about them."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.load import tls
from tests.nginx import configuration
from tests.waiting import SECONDS, wait_for

from tare.native import native

TARE_LOAD = native("bin", "tare-load")
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


@dataclass
class Nginx:
    """A running nginx: two servers in one process, each with an access log."""

    folder: Path
    ports: tuple[int, int]
    process: subprocess.Popen[bytes]

    def url(self, server: int = 0) -> str:
        return f"http://127.0.0.1:{self.ports[server]}/"

    def worker(self) -> int:
        """The process that answers requests; nginx listens before it has made it."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        wait_for(children.read_text)
        return int(children.read_text())

    def logged(self) -> tuple[int, int]:
        """Requests in the access logs, once nginx has stopped by itself."""
        subprocess.run(["nginx", "-p", self.folder, "-c", "nginx.conf", "-s", "quit"], check=True)
        self.process.wait(SECONDS)
        first, second = (
            len((self.folder / name).read_text().splitlines()) for name in ("one.log", "two.log")
        )
        return first, second


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Nginx]:
    yield from two_servers(tmp_path / "nginx", ("", ""))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for loopback that signed itself, and its key."""
    return tls.certificate(tmp_path / "tls")


def two_servers(
    folder: Path, how: tuple[str, str], more: str = "", logged: str = "$request"
) -> Iterator[Nginx]:
    """Runs an nginx whose two servers say hello; `how` follows what each listens on."""
    folder.mkdir()
    ports = free_ports()
    servers = (
        f"server {{ listen 127.0.0.1:{port} {own}; access_log {log} words; {more}"
        ' location / { return 200 "hello\\n"; } }'
        for port, log, own in zip(ports, ("one.log", "two.log"), how, strict=True)
    )
    yield from serving(folder, ports, f"log_format words '{logged}';", *servers)


def serving(folder: Path, ports: tuple[int, int], *lines: str) -> Iterator[Nginx]:
    """Runs an nginx that has these lines in its `http` block."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    (folder / "nginx.conf").write_text(configuration(*lines))
    command = ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
    with subprocess.Popen(command) as process:
        try:
            for port in ports:
                wait_for_port(port)
            yield Nginx(folder, ports, process)
        finally:
            process.terminate()


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


Measure = Callable[..., "Measurement"]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    def run(*arguments: str, protocol: str = "http") -> Measurement:
        files = tmp_path / "samples.arrow", tmp_path / "machine.arrow"
        command = [TARE_LOAD, protocol, "--json", "--warmup", "0s", *arguments]
        command += ["--out", str(files[0]), "--machine", str(files[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.stdout, done.stderr
        summary = json.loads(done.stdout)
        failed = all(target["requests"] == target["errors"] for target in summary["targets"])
        assert done.returncode == int(failed), done.stderr
        return Measurement(summary, rows(files[0]), rows(files[1]))

    return run


def most_kib(process: subprocess.Popen[str]) -> int:
    """The most memory that was resident at a time until the process ended, in KiB."""
    most = 0
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                most = int(line.split()[1])
        time.sleep(0.02)
    return most


@dataclass
class Measurement:
    """What was printed, and the rows of the two tables."""

    summary: dict[str, Any]
    samples: list[dict[str, Any]]
    machine: list[dict[str, Any]]


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of an Arrow stream that was written to its end."""
    import pyarrow as pa

    # Without it the stream might have ended between two batches.
    assert path.read_bytes().endswith(END_OF_STREAM)
    with pa.ipc.open_stream(path) as stream:
        found: list[dict[str, Any]] = stream.read_all().to_pylist()
    return found


def rows_of_a_part(path: Path) -> list[dict[str, Any]]:
    """The rows of an Arrow stream that was cut short, up to its last whole batch."""
    import pyarrow as pa

    found: list[dict[str, Any]] = []
    with pa.ipc.open_stream(path) as stream:
        while True:
            try:
                found += stream.read_next_batch().to_pylist()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return found


def free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def wait_for_port(port: int) -> None:
    def connected() -> bool:
        socket.create_connection(("127.0.0.1", port)).close()
        return True

    wait_for(connected, f"who listens on port {port}")
