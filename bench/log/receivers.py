# SPDX-License-Identifier: Apache-2.0
"""Where the events of a Java program go over a connection: what receives them, and counts."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.log.kieker import Records
from bench.log.sinks import METHOD, Program, Sink
from bench.results import ROOT

from tare.lab.environments.ports import free_port

LOCAL = "127.0.0.1"
SECONDS = 60


@contextmanager
def kieker_receiver(_: Program) -> Iterator[Sink]:
    """One that reads Kieker's records from a connection, and counts them."""
    records = Records(METHOD)
    with ThreadPoolExecutor(1) as pool, socket.create_server((LOCAL, 0)) as server:

        def receive() -> int:
            with suppress(OSError):  # none has come
                connection, _ = server.accept()
                with connection:
                    while data := connection.recv(1 << 20):
                        records.feed(data)
            return records.found

        received = pool.submit(receive)
        try:
            yield Sink(lambda _: received.result(SECONDS), port=server.getsockname()[1])
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


@contextmanager
def otlp_receiver(_: Program) -> Iterator[Sink]:
    """One that reads OpenTelemetry's own messages over HTTP, and counts spans."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    counts: list[int] = []
    answer = ExportTraceServiceResponse().SerializeToString()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = ExportTraceServiceRequest.FromString(body)
            counts.extend(
                sum(span.name.endswith(METHOD) for span in scope.spans)
                for resource in request.resource_spans
                for scope in resource.scope_spans
            )
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Says nothing of each request."""

    with ThreadingHTTPServer((LOCAL, 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Sink(lambda _: sum(counts), port=server.server_port)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def zipkin_server(program: Program) -> Iterator[Sink]:
    """Zipkin's own server, which counts the spans that it has taken."""
    jar, port = ROOT / "target" / "peers" / "bin" / "zipkin.jar", free_port(LOCAL)
    words = [str(program.java), "-Xmx1G", "-jar", str(jar)]
    # It counts what it takes; what it keeps nobody reads.
    variables = {"QUERY_PORT": str(port), "STORAGE_TYPE": "mem", "MEM_MAX_SPANS": "50000"}
    with (
        (program.folder / "zipkin.txt").open("wb") as output,
        subprocess.Popen(words, env=os.environ | variables, stdout=output, stderr=output) as server,
    ):
        try:
            _wait_for(f"http://{LOCAL}:{port}/health", server)
            yield Sink(lambda _: _zipkins_count(port), port=port)
        finally:
            server.terminate()


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=SECONDS):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{server.args!r} does not answer")


def _zipkins_count(port: int) -> int:
    with urllib.request.urlopen(f"http://{LOCAL}:{port}/prometheus", timeout=SECONDS) as answer:
        text = answer.read().decode()
    taken = re.findall(r'^zipkin_collector_spans_total\{.*transport="http".*\} (\S+)$', text, re.M)
    return int(sum(map(float, taken)))
