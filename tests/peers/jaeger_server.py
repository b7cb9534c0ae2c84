# SPDX-License-Identifier: Apache-2.0
"""A real Jaeger: collector, storage and query service in one program, with an empty store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request

from bench.spans.collectors import free_address, saved_of
from tests.peers.programs import answer, installed, running
from tests.waiting import wait_for


@dataclass(frozen=True)
class Jaeger:
    """A running Jaeger."""

    url: str
    """Of the query service."""
    otlp: str
    metrics: str

    def send(self, request: bytes) -> None:
        """Sends a request of OTLP in protobuf."""
        kind = {"content-type": "application/x-protobuf"}
        answer(Request(f"{self.otlp}/v1/traces", request, kind))

    def wait_for_spans(self, count: int) -> None:
        """Waits until this number of spans is stored since the start."""
        wait_for(lambda: saved_of(answer(self.metrics).decode()) >= count, "spans in Jaeger")


@contextmanager
def jaeger(folder: Path, *arguments: str, storage: str = "memory") -> Iterator[Jaeger]:
    """Jaeger on the loopback interface, ready; its output is in `folder`."""
    program = installed("jaeger")
    query, otlp, admin = free_address(), free_address(), free_address()
    addresses = {
        "query.http-server": query,
        "query.grpc-server": free_address(),
        "collector.otlp.http": otlp,
        "collector.otlp.grpc": free_address(),
        "collector.http-server": free_address(),
        "collector.grpc-server": free_address(),
        "admin.http": admin,
    }
    log = folder / "jaeger.txt"
    command: list[str | Path] = [
        program,
        *(f"--{name}.host-port={address}" for name, address in addresses.items()),
        # Jaeger answers a request before it has stored the spans, and drops what does not fit.
        "--collector.queue-size=1000000",
        *arguments,
    ]
    # Without a sampler, it would send its own spans to another port, and wait for that at its end.
    variables = {"SPAN_STORAGE_TYPE": storage, "OTEL_TRACES_SAMPLER": "always_off"}
    with running(command, log, **variables) as process:
        found = Jaeger(f"http://{query}", f"http://{otlp}", f"http://{admin}/metrics")

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            return bool(answer(f"{found.url}/api/services") and answer(found.metrics))

        wait_for(is_ready, "Jaeger")
        yield found
