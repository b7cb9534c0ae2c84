# SPDX-License-Identifier: Apache-2.0
"""A receiver of spans, and senders in each form of the protocol."""

import base64
import gzip
import json
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.waiting import SECONDS

from tare.native import native

PROGRAM = native("bin", "tare-spans")


@dataclass(frozen=True)
class Receiver:
    """A running receiver."""

    process: subprocess.Popen[str]
    grpc: int
    http: int
    file: Path

    def post(
        self, body: bytes, kind: str = "application/json", path: str = "/v1/traces", **headers: str
    ) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        connection = HTTPConnection("127.0.0.1", self.http, timeout=SECONDS)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, body, {"content-type": kind, **named})
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def send(self, *spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
        """Sends spans as JSON; the answer."""
        status, body = self.post(json.dumps(request(*spans, service=service)).encode())
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """The exit code, and what was printed on both streams."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err

    def rows(self) -> list[dict[str, Any]]:
        """What is in the file so far."""
        return rows_of(self.file)


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a file, up to its last whole batch."""
    found: list[dict[str, Any]] = []
    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as reader:
        try:
            for batch in reader:
                found += batch.to_pylist()
        except pa.ArrowInvalid:
            pass
    return found


def span(number: int = 1, **more: Any) -> dict[str, Any]:
    """One span, in OTLP's JSON."""
    return {
        "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "GET /", "kind": 2,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000005000",
    } | more  # fmt: skip


def request(*spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    """A request to export spans, in OTLP's JSON."""
    named = {"key": "service.name", "value": {"stringValue": service}}
    scopes = [{"spans": [*spans]}]
    return {"resourceSpans": [{"resource": {"attributes": [named]}, "scopeSpans": scopes}]}


def protobuf(*numbers: int) -> bytes:
    """Spans that differ in their IDs alone, in protobuf."""
    spans = (span(number, attributes=[{"key": "unused"}]) for number in numbers)
    found = request(*spans)
    # The library's JSON has IDs in base64.
    for sent in found["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId"):
            sent[key] = base64.b64encode(bytes.fromhex(sent[key])).decode()
    return bytes(ParseDict(found, ExportTraceServiceRequest()).SerializeToString())


def framed(message: bytes, *, packed: bool = False) -> bytes:
    """A message as gRPC sends it."""
    content = gzip.compress(message) if packed else message
    return bytes([packed]) + len(content).to_bytes(4) + content


@contextmanager
def receiving(
    file: Path, before: Sequence[str] = (), options: Sequence[str] = ()
) -> Iterator[Receiver]:
    """A receiver on free ports, started by the command `before`."""
    process = subprocess.Popen(
        [
            *before,
            *(PROGRAM, "receive", "--out", str(file), "--json"),
            *("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"),
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        ports = re.findall(r"127\.0\.0\.1:(\d+)", line)
        assert len(ports) == 2, line
        grpc, http = map(int, ports)
        yield Receiver(process, grpc, http, file)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path / "spans.arrow") as found:
        yield found
