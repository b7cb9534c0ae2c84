# SPDX-License-Identifier: Apache-2.0
"""A server that scrolls as Elasticsearch does, or as it should not; tests/peers has a real one."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched, Window, elasticsearch
from tare.samples.fetch.elasticsearch import fetch
from tare.samples.read.span_file import read_spans

T = 1_700_000_000_000_000
Json = dict[str, Any]
Answer = tuple[int, Json | bytes]


@contextmanager
def serving(answer: Callable[[str, str, Json], Answer]) -> Iterator[str]:
    """A server; it is asked with method, path and the JSON that was sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = answer(self.command, self.path, asked)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_DELETE(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def span(number: int) -> Json:
    return {
        "traceID": f"{number // 2:032x}", "spanID": f"{number:016x}", "operationName": "GET /",
        "startTime": T + number, "duration": 7,
        "process": {"tags": [{"key": "a", "value": "b" * 5_000}], "serviceName": "shop"},
        "startTimeMillis": T // 1_000,
    }  # fmt: skip


class Store:
    """An index, whose scrolls have to be deleted."""

    def __init__(self, spans: int) -> None:
        self.spans = [span(number) for number in range(spans)]
        self.scrolls: dict[str, list[Json]] = {}
        self.paths: list[str] = []

    def answer(self, method: str, path: str, asked: Json) -> Answer:
        self.paths.append(path)
        if method == "DELETE":
            del self.scrolls[asked["scroll_id"]]
            return 200, {}
        if path == "/_search/scroll":
            return self.page(asked["scroll_id"])
        limits = asked["query"].get("range", {}).get("startTime", {"gte": 0, "lte": 2 * T})
        found = [one for one in self.spans if limits["gte"] <= one["startTime"] <= limits["lte"]]
        self.size = asked["size"]
        self.scrolls["s"] = found
        return self.page("s")

    def page(self, scroll: str) -> Answer:
        left = self.scrolls[scroll]
        self.scrolls[scroll] = left[self.size :]
        hits = [{"_source": one} for one in left[: self.size]]
        return 200, {"_scroll_id": scroll, "_shards": {"failed": 0}, "hits": {"hits": hits}}


def test_all_documents_of_an_index_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elasticsearch, "PAGE", 7)
    store = Store(50)
    with serving(store.answer) as url:
        assert fetch(url, "jaeger-span-*", None, tmp_path / "a.json") == Fetched(50, 25)
    assert store.paths[0] == "/jaeger-span-*/_search?scroll=1m"
    assert store.scrolls == {}
    found = read_spans(tmp_path / "a.json")
    assert (found.spans, found.traces) == (50, 25)
    assert found.kinds[0].p50_ns == 7_000


def test_spans_of_the_window_are_saved(tmp_path: Path) -> None:
    store = Store(50)
    window = Window((T + 10) * 1_000, (T + 19) * 1_000)
    with serving(store.answer) as url:
        assert fetch(url, "a", window, tmp_path / "a.json") == Fetched(10, 5)


def test_an_index_without_spans_is_an_error(tmp_path: Path) -> None:
    with serving(Store(0).answer) as url, pytest.raises(InputError, match="has no span of this"):
        fetch(url, "a", None, tmp_path / "a.json")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ((404, {"error": "no such index"}), InputError, "HTTP status 404: .*no such index"),
        ((500, b"broken"), TareError, "HTTP status 500: broken"),
        ((200, b"<html>"), TareError, "the answer is no JSON object"),
        ((200, b"[" * 100_000), TareError, "the answer is no JSON object"),
        ((200, {}), TareError, "has no documents"),
        ((200, {"hits": {"hits": [{"_source": 5}]}}), TareError, "documents that are no objects"),
        ((200, {"timed_out": True}), TareError, "a part of the spans only"),
        ((200, {"_shards": {"failed": 1}}), TareError, "a part of the spans only"),
    ],
)
def test_other_answers_are_errors(
    tmp_path: Path, answer: Answer, kind: type[TareError], message: str
) -> None:
    with serving(lambda *_: answer) as url:
        with pytest.raises(kind, match=message) as raised:
            fetch(url, "a", None, tmp_path / "a.json")
        assert str(raised.value).startswith(f"{url}: ")
    assert not [*tmp_path.iterdir()]


def test_too_large_a_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elasticsearch, "LARGEST_FILE", 1_000)
    with serving(Store(50).answer) as url, pytest.raises(InputError, match="fetch a shorter time"):
        fetch(url, "a", None, tmp_path / "a.json")
    assert not [*tmp_path.iterdir()]
