# SPDX-License-Identifier: Apache-2.0
"""Spans that Jaeger has stored in Elasticsearch, one document per line.

A scroll reads an index as it was at its first request, however many documents it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched, Window
from tare.samples.fetch.http_body import http_body
from tare.trust import new_output

PAGE = 2_000
"""Documents per answer: a span with its attributes has some KiB."""
KEPT = "1m"
"""For the next request of a scroll."""
LARGEST_ANSWER = 64 << 20
LARGEST_FILE = 4 << 30
SERVER = "Elasticsearch"
KEY = "startTimeMillis"


def fetch(url: str, index: str, window: Window | None, out: Path) -> Fetched:
    """Writes each span that begins in the window, or each span of the index.

    `index` may be a pattern (`jaeger-span-*`). Raises InputError if there is no span or no such
    index, TareError if the server fails or answers in part; then no file is written.
    """
    traces: set[str] = set()
    spans = 0
    with new_output(out) as file:
        for span in documents(url, index, window):
            spans += 1
            traces.add(str(span.get("traceID")))
            # Readers recognize the format by this key, if it is near the beginning.
            first = {KEY: span[KEY]} if KEY in span else {}
            file.write(json.dumps(first | span).encode() + b"\n")
            if file.tell() > LARGEST_FILE:
                raise InputError(
                    f"{out}: more than {LARGEST_FILE >> 30} GiB of spans; fetch a shorter time"
                )
        if not spans:
            raise InputError(
                f"{url}: the index {index} has no span of this time; {url}/_cat/indices lists the"
                " indices"
            )
    return Fetched(spans, len(traces))


def documents(url: str, index: str, window: Window | None) -> Iterator[dict[str, Any]]:
    """The spans of an index. Raises as `fetch` does."""
    query: dict[str, Any] = {"match_all": {}}
    if window is not None:
        times = {"gte": window.start_ns // 1_000, "lte": -(-window.end_ns // 1_000)}
        query = {"range": {"startTime": times}}
    asked = {"size": PAGE, "sort": ["_doc"], "query": query}
    answer = post(url, f"/{quote(index, safe='*,')}/_search?scroll={KEPT}", asked)
    try:
        while hits := _hits(url, answer):
            yield from hits
            answer = post(
                url, "/_search/scroll", {"scroll": KEPT, "scroll_id": answer["_scroll_id"]}
            )
    finally:
        if scroll := answer.get("_scroll_id"):
            ended = request(url, "/_search/scroll", {"scroll_id": scroll}, "DELETE")
            http_body(ended, url, SERVER, LARGEST_ANSWER)


def request(url: str, path: str, content: Any = None, method: str = "POST") -> Request:
    """A request with `content` as JSON."""
    body = None if content is None else json.dumps(content).encode()
    kind = {} if body is None else {"Content-Type": "application/json"}
    return Request(f"{url}{path}", body, kind, method=method)


def post(url: str, path: str, content: Any = None) -> dict[str, Any]:
    """What Elasticsearch answers. Raises as `http_body`, and TareError if it is no JSON object."""
    body = http_body(request(url, path, content), url, SERVER, LARGEST_ANSWER)
    if len(body) > LARGEST_ANSWER:
        raise TareError(f"{url}: more than {LARGEST_ANSWER >> 20} MiB in one answer")
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise TareError(
            f"{url}: the answer is no JSON object; expected the address of Elasticsearch, such as"
            " http://localhost:9200"
        )
    return answer


def _hits(url: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of one answer. Raises TareError if some shard did not answer."""
    shards = answer.get("_shards") or {}
    if answer.get("timed_out") or shards.get("failed"):
        raise TareError(f"{url}: Elasticsearch answered with a part of the spans only; try again")
    try:
        found = [hit["_source"] for hit in answer["hits"]["hits"]]
    except (KeyError, TypeError) as error:
        raise TareError(f"{url}: the answer has no documents in hits.hits") from error
    if not all(isinstance(one, dict) for one in found):
        raise TareError(f"{url}: the answer has documents that are no objects")
    return found
