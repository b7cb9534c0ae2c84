# SPDX-License-Identifier: Apache-2.0
"""A server that asks the next one: chained_service.py ADDRESS PORT [NEXT_ADDRESS NEXT_PORT].

It appends a line to VOLUME/asked for each request, and exports a span in the trace of the caller.
"""

import json
import os
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ADDRESS, PORT, *NEXT = sys.argv[1:]
ENDPOINT = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
VOLUME = Path(os.environ.get("VOLUME", "."))


class Service(BaseHTTPRequestHandler):
    """Answers what the next one answers, after its own name."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        start = time.time_ns()
        trace, parent = self.headers.get("traceparent", "-" * 3).split("-")[1:3]
        trace, span = trace or os.urandom(16).hex(), os.urandom(8).hex()
        answer = b"end"
        if NEXT:
            url = f"http://{NEXT[0]}:{NEXT[1]}/"
            headers = {"traceparent": f"00-{trace}-{span}-01"}
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as found:
                answer = found.read()
        with (VOLUME / "asked").open("a", encoding="ascii") as file:
            file.write("x\n")
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.export(trace, span, parent, start)

    def export(self, trace: str, span: str, parent: str, start: int) -> None:
        """Sends the span, unless nobody receives it."""
        if not ENDPOINT:
            return
        fields = {"name": "GET /", "kind": 2, "traceId": trace, "spanId": span}
        fields |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(time.time_ns())}
        fields |= {"parentSpanId": parent} if parent else {}
        name = {"stringValue": os.environ["OTEL_SERVICE_NAME"]}
        resource = {"attributes": [{"key": "service.name", "value": name}]}
        body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [fields]}]}]}
        urllib.request.urlopen(
            urllib.request.Request(
                f"{ENDPOINT}/v1/traces",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
        ).close()


if os.environ.get("OWN_FILE_SYSTEM"):
    assert VOLUME.stat().st_dev != VOLUME.parent.stat().st_dev, "no file system of its own"
ThreadingHTTPServer((ADDRESS, int(PORT)), Service).serve_forever()
