# SPDX-License-Identifier: Apache-2.0
"""Programs that receive spans on one CPU, and count what they have stored."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from bench.link.services import cpu_seconds
from bench.load.peers import TOOLS
from bench.turns import on_cpu

from tare.lab.environments.ports import free_port
from tare.native import native

LOCAL = "127.0.0.1"
CPU = 0
READY_S = 60
QUIET_S = 0.3
PART = 1 << 20
CONFIGURATION = """\
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{grpc}"}}, http: {{endpoint: "{http}"}}}}}}}}
exporters: {{file: {{path: "{file}"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
"""


def free_address() -> str:
    """One where nothing listens."""
    return f"{LOCAL}:{free_port(LOCAL)}"


@dataclass
class Running:
    """A collector with an empty store, and the addresses where it listens."""

    folder: Path
    grpc: str = field(default_factory=free_address)
    http: str = field(default_factory=free_address)
    admin: str = field(default_factory=free_address)
    pid: int = 0
    stored: int = 0
    """Spans, once it has ended."""
    cpu_s: float = 0
    """What it took from the first request until it had nothing more to do."""

    @property
    def file(self) -> Path:
        """What it writes."""
        return self.folder / "stored"


@dataclass(frozen=True)
class Collector:
    """A program that may be installed."""

    name: str
    program: str
    arguments: Callable[[Running], list[str]]
    count: Callable[[Running], int]
    counts_itself: bool = False
    """Whether `count` asks the running program: else it reads the file afterwards."""
    answer: bytes = b""
    """Its answer to a request whose spans it has all accepted, in protobuf."""

    @contextmanager
    def running(self, folder: Path) -> Iterator[Running]:
        """Runs it with an empty store; what it stored and used is known at the end."""
        run = Running(folder)
        run.file.unlink(missing_ok=True)
        command = on_cpu(CPU, [self.program, *self.arguments(run)])
        with (
            (folder / f"{self.name}.txt").open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=output) as process,
        ):
            try:
                wait_until_it_listens(process, run.grpc, run.http)
                run.pid = process.pid
                wait_until_idle(run.pid)
                before = cpu_seconds(run.pid)
                yield run
                wait_until_idle(run.pid)
                run.cpu_s = cpu_seconds(run.pid) - before
                if self.counts_itself:
                    run.stored = self.count(run)
                process.send_signal(signal.SIGINT)
                process.wait(READY_S)
                if not self.counts_itself:
                    run.stored = self.count(run)
            finally:
                process.kill()


def found() -> list[Collector]:
    """The collectors that this machine has; Tare's is the first."""
    return [collector for collector in COLLECTORS if os.access(collector.program, os.X_OK)]


def absent() -> list[str]:
    """The names of the others."""
    return [collector.name for collector in COLLECTORS if collector not in found()]


def wait_until_it_listens(process: "subprocess.Popen[bytes]", *addresses: str) -> None:
    """Ends the bench if it does not."""
    deadline = time.monotonic() + READY_S
    for address in addresses:
        port = int(address.rpartition(":")[2])
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError), socket.create_connection((LOCAL, port)):
                break
            time.sleep(0.02)
        else:
            raise SystemExit(f"{process.args!r} does not listen on {address}")


def wait_until_idle(pid: int) -> None:
    """Until it has neither used a CPU nor waited for one, for some time, but for ticks."""
    before = busy_seconds(pid)
    while True:
        time.sleep(QUIET_S)
        now = busy_seconds(pid)
        if now - before < 0.02 * QUIET_S:
            return
        before = now


def busy_seconds(pid: int) -> float:
    """CPU time of all threads, and how long they waited for a CPU."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        used, waited, _ = (task / "schedstat").read_text().split()
        total += int(used) + int(waited)
    return total / 1e9


def _tare(run: Running) -> list[str]:
    return ["receive", "--out", str(run.file), "--grpc", run.grpc, "--http", run.http]


def rows(run: Running) -> int:
    """The rows of an Arrow stream."""
    import pyarrow as pa

    with pa.OSFile(str(run.file)) as source, pa.ipc.open_stream(source) as reader:
        return sum(batch.num_rows for batch in reader)


def _otelcol(run: Running) -> list[str]:
    configuration = run.folder / "otelcol.yaml"
    configuration.write_text(CONFIGURATION.format(grpc=run.grpc, http=run.http, file=run.file))
    return ["--config", f"file:{configuration}"]


def spans_in_json(run: Running) -> int:
    """The spans in lines of OTLP's JSON."""
    key = b'"spanId"'
    found, rest = 0, b""
    with run.file.open("rb") as file:
        while part := file.read(PART):
            part = rest + part
            found += part.count(key)
            rest = part[1 - len(key) :]
    return found


def _jaeger(run: Running) -> list[str]:
    own = {
        "collector.otlp.grpc.host-port": run.grpc,
        "collector.otlp.http.host-port": run.http,
        "admin.http.host-port": run.admin,
        "collector.grpc-server.host-port": free_address(),
        "collector.http-server.host-port": free_address(),
        "query.grpc-server.host-port": free_address(),
        "query.http-server.host-port": free_address(),
        "log-level": "error",
    }
    return [f"--{key}={value}" for key, value in own.items()]


def saved(run: Running) -> int:
    """The spans that Jaeger's metrics count as saved."""
    with urlopen(f"http://{run.admin}/metrics", timeout=READY_S) as answer:
        return saved_of(answer.read().decode())


def saved_of(metrics: str) -> int:
    """The same, from the text of the metrics."""
    pattern = r'^jaeger_collector_spans_saved_by_svc_total\{.*result="ok".*\} (\S+)$'
    return int(sum(map(float, re.findall(pattern, metrics, re.MULTILINE))))


COLLECTORS = (
    Collector("tare", native("bin", "tare-spans"), _tare, rows),
    Collector(
        "jaeger", str(TOOLS / "jaeger"), _jaeger, saved, counts_itself=True, answer=b"\x0a\x00"
    ),
    Collector("otelcol", str(TOOLS / "otelcol"), _otelcol, spans_in_json, answer=b"\x0a\x00"),
)
