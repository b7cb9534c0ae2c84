# SPDX-License-Identifier: Apache-2.0
"""Traces from the HTTP API of Jaeger's query service, as lines of Jaeger's JSON.

The API returns at most `limit` traces of a window of time and cannot continue: a window with more
traces, or with too large an answer, is divided into halves.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched, Window
from tare.samples.fetch.http_body import SHOWN, http_body
from tare.trust import new_output

PAGE = 500
LARGEST_ANSWER = 64 << 20
LARGEST_FILE = 1 << 30


class _TooManyError(Exception):
    """A window has more than one answer can hold; the text says what."""


def fetch(url: str, service: str, window: Window, out: Path) -> Fetched:
    """Writes each trace that has a span of `service` in the window, once, as a line.

    Traces are as Jaeger stores them (`raw`): its query service would change the times of spans
    whose clocks differ. Raises InputError if there is no trace or the server refuses the request,
    TareError if the server fails or sends something else; then no file is written.
    """
    pending = [(window.start_ns // 1_000, -(-window.end_ns // 1_000))]
    seen: set[str] = set()
    spans = 0
    with new_output(out) as file:
        while pending:
            start, end = pending.pop()
            try:
                traces = _search(url, service, start, end)
            except _TooManyError as error:
                if end - start < 2:
                    raise TareError(f"{url}: one microsecond has {error}") from None
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]
                continue
            # A trace on the border of two windows is in both.
            for trace in traces:
                if trace["traceID"] in seen:
                    continue
                seen.add(trace["traceID"])
                spans += len(trace["spans"])
                file.write(json.dumps({"data": [trace]}).encode() + b"\n")
            if file.tell() > LARGEST_FILE:
                raise InputError(
                    f"{out}: more than {LARGEST_FILE >> 30} GiB of traces; fetch a shorter time"
                )
        if not seen:
            raise InputError(
                f"{url}: no trace of the service '{service}' in this time; {url}/api/services lists"
                " the services"
            )
    return Fetched(spans, len(seen))


def _search(url: str, service: str, start: int, end: int) -> list[dict[str, Any]]:
    """The traces of a window in µs. Raises _TooManyError if these may not be all."""
    query = {"service": service, "start": start, "end": end, "limit": PAGE, "raw": "true"}
    try:
        answer = json.loads(_get(f"{url}/api/traces?{urlencode(query)}", url))
    except (ValueError, RecursionError):
        raise _unexpected(url) from None
    if not isinstance(answer, dict):
        raise _unexpected(url)
    if answer.get("errors"):
        raise TareError(f"{url}: Jaeger reports: {json.dumps(answer['errors'])[:SHOWN]}")
    # Jaeger's port of metrics answers with another object.
    traces = answer.get("data", False)
    traces = [] if traces is None else traces
    if not isinstance(traces, list) or not all(map(_is_trace, traces)):
        raise _unexpected(url)
    if len(traces) >= PAGE:
        raise _TooManyError(f"{PAGE} traces or more")
    return traces


def _get(address: str, url: str) -> bytes:
    body = http_body(address, url, "Jaeger's query service", LARGEST_ANSWER)
    if len(body) > LARGEST_ANSWER:
        raise _TooManyError(f"more than {LARGEST_ANSWER >> 20} MiB of traces")
    return body


def _is_trace(trace: Any) -> bool:
    if not isinstance(trace, dict):
        return False
    return isinstance(trace.get("traceID"), str) and isinstance(trace.get("spans"), list)


def _unexpected(url: str) -> TareError:
    return TareError(
        f"{url}: the answer is not a list of traces in JSON, or it was cut off; expected the"
        " address of Jaeger's query service, such as http://localhost:16686"
    )
