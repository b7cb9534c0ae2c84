# SPDX-License-Identifier: Apache-2.0
"""A server that waits in a payment, and exports both as spans: traced_service.py ADDRESS PORT.

With the collector of a pipeline it exports them there, too, but not those of each LOSE-th request.
"""

import itertools
import json
import os
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAY_NS = int(float(os.environ.get("PAY_MS", "1")) * 1e6)
ENDPOINT = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
COLLECTOR = os.environ.get("TARE_COLLECTOR_ENDPOINT", "")
LOSE = int(os.environ.get("LOSE", "0"))
NUMBERS = itertools.count(1)


class Service(BaseHTTPRequestHandler):
    """Answers after the payment, and then exports its spans: the next request waits for that."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        start = time.time_ns()
        end = start + 200_000 + PAY_NS
        while time.time_ns() < end:
            pass
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.export(start, end)

    def export(self, start: int, end: int) -> None:
        """Times are those that were intended, so that no test measures the machine."""
        if not ENDPOINT:
            return
        trace, root = os.urandom(16).hex(), os.urandom(8).hex()
        whole = {"name": "GET /", "kind": 2, "spanId": root, "startTimeUnixNano": str(start)}
        pay = {"name": "pay", "kind": 1, "spanId": os.urandom(8).hex(), "parentSpanId": root}
        pay["startTimeUnixNano"] = str(start + 200_000)
        spans = [span | {"traceId": trace, "endTimeUnixNano": str(end)} for span in (whole, pay)]
        name = {"stringValue": os.environ["OTEL_SERVICE_NAME"]}
        resource = {"attributes": [{"key": "service.name", "value": name}]}
        body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}
        send(f"{ENDPOINT}/v1/traces", body)
        if COLLECTOR and not (LOSE and next(NUMBERS) % LOSE == 0):
            send(COLLECTOR, body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def send(address: str, body: object) -> None:
    kind = {"content-type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), kind)
    urllib.request.urlopen(request).close()


ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Service).serve_forever()
