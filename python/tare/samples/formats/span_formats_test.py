# SPDX-License-Identifier: Apache-2.0
"""Formats of spans: OTLP and Jaeger."""

import json
from pathlib import Path
from typing import Any

import pytest

from tare.errors import InputError
from tare.samples import read_files
from tare.samples.formats.formats_test import T, read


def otlp(spans: list[dict[str, Any]], service: str = "shop") -> str:
    host = {"key": "host.cpus", "value": {"intValue": "2"}}
    named = {"key": "service.name", "value": {"stringValue": service}}
    resource = {"attributes": [host, named]} if service else {}
    scopes = [{"scope": {"name": "x"}, "spans": [span]} for span in spans]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}) + "\n"


def span(name: str, start: int, duration: int, **more: Any) -> dict[str, Any]:
    return {
        "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": name,
        "kind": 2, "startTimeUnixNano": str(T * 10**9 + start),
        "endTimeUnixNano": str(T * 10**9 + start + duration),
    } | more  # fmt: skip


def test_otlp(tmp_path: Path) -> None:
    failed = span("pay", 5, 7, status={"code": 2, "message": "x"}, parentSpanId="aaaaaaaaaaaaaaaa")
    named = span("pay", 6, 8, status={"code": "STATUS_CODE_ERROR"})
    number = span("GET /", 9, 0) | {"endTimeUnixNano": T * 10**9 + 12}
    unended = span("GET /", 10, 0) | {"endTimeUnixNano": "0"}
    text = otlp([span("GET /", 0, 100, status={}), failed]) + '{"resourceMetrics": []}\n'
    found = read(tmp_path, "a.jsonl", text + otlp([named, number, unended]) + '{"resourceSp')
    names = ("GET /", "pay", "pay", "GET /")
    assert found["span"] == [f"shop: {name} (server)" for name in names]
    assert found["start_ns"] == [T * 10**9 + place for place in (0, 5, 6, 9)]
    assert found["duration_ns"] == [100, 7, 8, 3]
    assert found["ok"] == [True, False, False, True]
    assert found["parent_id"] == [None, "aaaaaaaaaaaaaaaa", None, None]
    assert found["trace_id"] == ["5b8efff798038103d269b633813fc60c"] * 4
    assert found["source"] == ["span"] * 4
    assert found["warnings"] == ["2 rows without a usable time (place 5): left out"]


def test_each_span_has_a_warm_up_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    inner = [span("pay", 10 * n, 5 + n) for n in range(4)]
    outer = [span("GET /", 10 * n, 90 + n) for n in range(2)]
    path.write_text(otlp([*inner, *outer]))
    runs = read_files({"a": [path], "b": [path]}, "a", warm_up=1).runs
    of_a = [(run.span, run.requests, run.summaries["mean"]) for run in runs if run.run == 1]
    assert of_a == [("shop: GET / (server)", 1, 91), ("shop: pay (server)", 3, 7)]


def test_equal_names_of_other_services_and_kinds_are_other_spans(tmp_path: Path) -> None:
    kinds = [2, 3, "SPAN_KIND_CLIENT", 1, 0]
    spans = [span("GET", place, 1, kind=kind) for place, kind in enumerate(kinds)]
    nameless = otlp([span("GET", 9, 1)], service="")
    found = read(tmp_path, "a.jsonl", otlp(spans) + otlp([span("GET", 8, 1)], "pay") + nameless)
    assert found["span"] == [
        "shop: GET (server)",
        "shop: GET (client)",
        "shop: GET (client)",
        "shop: GET",
        "shop: GET",
        "pay: GET (server)",
        "GET (server)",
    ]


def test_links_to_other_traces_are_no_parents_of_spans_of_jaeger(tmp_path: Path) -> None:
    def jaeger_span(own: str, *references: tuple[str, str]) -> dict[str, Any]:
        named = [{"traceID": trace, "spanID": span} for trace, span in references]
        times = {"startTime": T * 10**6, "duration": 5}
        return {"traceID": "a1", "spanID": own, "operationName": own, "references": named} | times

    other, parent = ("a2", "b9"), ("a1", "b1")
    spans = [
        jaeger_span("b1", other),
        jaeger_span("b2", other, parent),
        jaeger_span("b3", parent, other),
        jaeger_span("b4"),
    ]
    text = json.dumps({"data": [{"traceID": "a1", "spans": spans, "processes": {}}]})
    found = read(tmp_path, "traces.json", text)
    assert dict(zip(found["span"], found["parent_id"], strict=True)) == {
        "b1": None, "b2": "b1", "b3": "b1", "b4": None
    }  # fmt: skip


def test_jaeger(tmp_path: Path) -> None:
    def jaeger_span(name: str, start: int, duration: int, **more: Any) -> dict[str, Any]:
        ids = {"traceID": "a1", "spanID": "b1", "processID": "p1"}
        return (
            ids
            | {"operationName": name, "startTime": T * 10**6 + start, "duration": duration}
            | more
        )

    parent = {"references": [{"refType": "CHILD_OF", "traceID": "a1", "spanID": "b0"}]}
    error = {"tags": [{"key": "error", "type": "bool", "value": True}]}
    told = {
        "tags": [{"key": "error", "type": "bool", "value": False}, {"key": "x", "value": "true"}]
    }
    told["tags"].append({"key": "span.kind", "type": "string", "value": "server"})
    first = [jaeger_span("GET /", 0, 100, **told), jaeger_span("pay", 5, 7, **parent, **error)]
    shop = {"p0": {"serviceName": "x"}, "p1": {"serviceName": "shop"}}
    traces = [
        {"traceID": "a1", "spans": first, "processes": shop},
        {"traceID": "a2", "spans": [jaeger_span("pay", 9, -1)]},
    ]
    document = json.dumps({"data": traces, "total": 0}, indent=2)
    found = read(tmp_path, "traces.json", document)
    assert found["span"] == ["shop: GET / (server)", "shop: pay"]
    assert found["start_ns"] == [T * 10**9, T * 10**9 + 5_000]
    assert found["duration_ns"] == [100_000, 7_000]
    assert found["ok"] == [True, False]
    assert found["parent_id"] == [None, "b0"]
    assert found["warnings"] == ["1 row without a usable time (place 3): left out"]
    with pytest.raises(
        InputError, match=r"cannot be read as JSON.*was its writer stopped"
    ) as raised:
        read(tmp_path, "cut.json", document[:-40])
    assert "\n" not in str(raised.value)
