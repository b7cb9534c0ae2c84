# SPDX-License-Identifier: Apache-2.0
"""A server that answers as Jaeger's query service does, or as it should not."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched, Window, jaeger_api
from tare.samples.read.span_file import read_spans

T = 1_700_000_000_000_000
MINUTE = Window(T * 1_000, (T + 60_000_000) * 1_000)
Answer = tuple[int, bytes]
Query = dict[str, str]


@contextmanager
def serving(answer: Callable[[Query], Answer], length: int = 0) -> Iterator[str]:
    """A server; `length` is how much more than the body it announces."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            assert parts.path == "/api/traces"
            status, body = answer(dict(parse_qsl(parts.query)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + length))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                assert len(body) > jaeger_api.LARGEST_ANSWER

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


def trace(number: int, start: int) -> dict[str, Any]:
    """A trace of two spans, the second of which begins 1 s later."""
    spans = [
        {
            "traceID": f"{number:032x}", "spanID": f"{own:016x}", "operationName": "GET /",
            "startTime": start + 1_000_000 * own, "duration": 5, "processID": "p1",
            "references": [],
        }
        for own in range(2)
    ]  # fmt: skip
    processes = {"p1": {"serviceName": "shop"}}
    return {"traceID": f"{number:032x}", "spans": spans, "processes": processes}


def storage(traces: list[dict[str, Any]]) -> Callable[[Query], Answer]:
    """Answers as Jaeger's memory storage does: the newest traces with a span in the window."""

    def answer(query: Query) -> Answer:
        assert query["service"] == "shop"
        assert query["raw"] == "true"
        start, end = int(query["start"]), int(query["end"])
        found = [
            trace
            for trace in traces
            if any(start <= of["startTime"] <= end for of in trace["spans"])
        ]
        return 200, json.dumps({"data": found[-int(query["limit"]) :], "errors": None}).encode()

    return answer


def fetched(tmp_path: Path, answer: Callable[[Query], Answer], length: int = 0) -> Fetched:
    with serving(answer, length) as url:
        return jaeger_api.fetch(url, "shop", MINUTE, tmp_path / "traces.json")


@pytest.mark.parametrize("number", [1, jaeger_api.PAGE - 1, jaeger_api.PAGE, 3_000])
def test_each_trace_is_fetched_once_however_many_pages_it_takes(
    tmp_path: Path, number: int
) -> None:
    traces = [trace(index, T + 58_000_000 * index // number) for index in range(number)]
    assert fetched(tmp_path, storage(traces)) == Fetched(2 * number, number)
    found = read_spans(tmp_path / "traces.json")
    assert (found.traces, found.spans, found.warnings) == (number, 2 * number, ())
    assert [kind.span for kind in found.kinds] == ["shop: GET /"]


def test_an_answer_that_is_too_large_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaeger_api, "LARGEST_ANSWER", 10_000)
    traces = [trace(number, T + 100_000 * number) for number in range(100)]
    assert fetched(tmp_path, storage(traces)).traces == 100


def test_a_trace_that_is_too_large_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaeger_api, "LARGEST_ANSWER", 1 << 20)
    with pytest.raises(TareError, match="one microsecond has more than 1 MiB of traces"):
        fetched(tmp_path, lambda _: (200, bytes(2 << 20)))


def test_a_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaeger_api, "LARGEST_FILE", 1_000)
    traces = [trace(number, T) for number in range(10)]
    with pytest.raises(InputError, match="GiB of traces; fetch a shorter time"):
        fetched(tmp_path, storage(traces))
    assert not [*tmp_path.iterdir()]


def test_a_full_window_of_a_microsecond_is_an_error(tmp_path: Path) -> None:
    traces = [trace(number, T) for number in range(jaeger_api.PAGE)]
    with pytest.raises(TareError, match="one microsecond has 500 traces or more"):
        fetched(tmp_path, storage(traces))


def test_a_service_without_traces_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no trace of the service 'shop'.*/api/services"):
        fetched(tmp_path, storage([]))


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            (500, b'{"errors":[{"code":500,"msg":"no\\nhosts"}]}'),
            TareError,
            "HTTP status 500: .*no",
        ),
        ((400, b"parse error"), InputError, "HTTP status 400: parse error"),
        ((404, b""), InputError, "HTTP status 404: Not Found"),
        ((200, b""), TareError, "not a list of traces"),
        ((200, b"<html>\xff"), TareError, "not a list of traces"),
        ((200, b"[" * 100_000), TareError, "not a list of traces"),
        ((200, b"[]"), TareError, "not a list of traces"),
        ((200, b'{"data": null}'), TareError, "no trace of"),
        ((200, b'{"data": {}}'), TareError, "not a list of traces"),
        ((200, b'{"status": "Server available"}'), TareError, "not a list of traces"),
        ((200, b'{"data": 5}'), TareError, "not a list of traces"),
        ((200, b'{"data": [5]}'), TareError, "not a list of traces"),
        ((200, b'{"data": [{"traceID": "1"}]}'), TareError, "not a list of traces"),
        ((200, b'{"data": [], "errors": [{"msg": "timeout"}]}'), TareError, "reports: .*timeout"),
    ],
)
def test_an_answer_that_is_none_is_an_error(
    tmp_path: Path, answer: Answer, error: type[TareError], message: str
) -> None:
    with pytest.raises(error, match=message):
        fetched(tmp_path, lambda _: answer)
    assert not [*tmp_path.iterdir()]


def test_an_answer_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    body = json.dumps({"data": [trace(1, T)]}).encode()
    with pytest.raises(TareError, match="was cut off"):
        fetched(tmp_path, lambda _: (200, body[:-20]), length=20)


def test_a_server_that_does_not_listen_is_an_error(tmp_path: Path) -> None:
    with serving(storage([])) as url:
        pass
    with pytest.raises(TareError, match="Connection refused; is it Jaeger's query service"):
        jaeger_api.fetch(url, "shop", MINUTE, tmp_path / "traces.json")
