# SPDX-License-Identifier: Apache-2.0
"""Zipkin's spans, Jaeger's in Elasticsearch, and attributes to group by."""

import json
from pathlib import Path
from typing import Any

import pytest

from tare.errors import InputError
from tare.samples import read_files
from tare.samples.formats import TRACES, detect
from tare.samples.formats import read as read_source
from tare.samples.formats.formats_test import T, read
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.source import Source
from tare.samples.formats.span_formats_test import otlp, span
from tare.samples.sql.engine import connect

START = T * 10**6
"""In µs."""


def zipkin(name: str, own: str, start: int, took: int | None, **more: Any) -> dict[str, Any]:
    return {
        "traceId": "a1", "id": own, "name": name, "timestamp": START + start, "duration": took,
        "localEndpoint": {"serviceName": "shop"},
    } | more  # fmt: skip


CALL = [
    zipkin("get /", "b1", 0, 100, kind="SERVER"),
    zipkin("pay", "b2", 10, 50, kind="CLIENT", parentId="b1", tags={"error": "timeout"}),
    zipkin("pay", "b2", 20, 30, kind="SERVER", parentId="b1", shared=True)
    | {"localEndpoint": {"serviceName": "bank"}},
    zipkin("select", "b3", 25, 10, parentId="b2", tags={}) | {"localEndpoint": {}},
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CALL),
        json.dumps([CALL[:2], CALL[2:]], indent=1),
        "".join(f"{json.dumps(part)}\n" for part in CALL),
        f"{json.dumps(CALL[:3])}\n{json.dumps(CALL[3:])}\n",
    ],
    ids=["list of spans", "list of traces", "a span a line", "a list a line"],
)
def test_zipkin(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, "a.json", text)
    assert found["span"] == [
        "shop: get / (server)",
        "shop: pay (client)",
        "bank: pay (server)",
        "select",
    ]
    assert found["start_ns"] == [1_000 * (START + start) for start in (0, 10, 20, 25)]
    assert found["duration_ns"] == [100_000, 50_000, 30_000, 10_000]
    assert found["ok"] == [True, False, True, True]
    # Both sides of the call have one id: the client's is made another.
    assert found["span_id"] == ["b1", "b2/client", "b2", "b3"]
    assert found["parent_id"] == [None, "b1", "b2/client", "b2"]
    assert found["warnings"] == []


@pytest.mark.parametrize("name", TRACES)
def test_each_span_has_its_service_and_host(tmp_path: Path, name: str) -> None:
    process = {"serviceName": "shop", "tags": tags(host_name="one", ip="10.0.0.1")}
    endpoint = {"serviceName": "shop", "ipv4": "10.0.0.1"}
    cpus = '"host.cpus", "value": {"intValue": "2"}'
    # An attribute may have no value.
    host = '"none"}, {"key": "host.name", "value": {"stringValue": "one"}'
    text = {
        "otlp": otlp([span("GET /", 0, 9)]).replace(cpus, host),
        "jaeger": json.dumps(
            {"data": [{"spans": [document("GET /", "b1", 0, 9) | {"processID": "p"}],
                       "processes": {"p": process}}]}
        ),
        "jaeger-elasticsearch": json.dumps(document("GET /", "b1", 0, 9, process=process)),
        "zipkin": json.dumps([zipkin("get /", "b1", 0, 9) | {"localEndpoint": endpoint}]),
    }[name]  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(text)
    source = read_source(connect(), path, name)
    assert isinstance(source, Source)
    (row,) = source.samples.select("service", "host").rows()
    assert row == {"service": "shop", "host": "10.0.0.1" if name == "zipkin" else "one"}


def test_a_span_of_zipkin_that_never_ended(tmp_path: Path) -> None:
    text = json.dumps([*CALL, zipkin("lost", "b4", 30, None)])
    found = read(tmp_path, "a.json", text)
    assert len(found["span"]) == len(CALL)
    assert found["warnings"] == ["1 row without a usable time (place 5): left out"]


@pytest.mark.parametrize(
    "text", ['[{"localEndpoint": {}}]', '[[], {"localEndpoint": 5}, null, 3, "x"]']
)
def test_no_span_of_zipkin(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no span in it"):
        read(tmp_path, "a.json", text)


def document(name: str, own: str, start: int, took: int, **more: Any) -> dict[str, Any]:
    return {
        "traceID": "a1", "spanID": own, "operationName": name, "startTime": START + start,
        "startTimeMillis": (START + start) // 1_000, "duration": took, "references": [],
        "process": {"serviceName": "shop", "tags": []},
    } | more  # fmt: skip


def tags(**values: Any) -> list[dict[str, Any]]:
    return [
        {"key": key.replace("_", "."), "type": "string", "value": value}
        for key, value in values.items()
    ]


INSIDE = [{"refType": "CHILD_OF", "traceID": "a1", "spanID": "b1"}]
DOCUMENTS = [
    document("GET /", "b1", 0, 100, tags=tags(span_kind="server")),
    document("pay", "b2", 10, 50, references=INSIDE, tag={"span@kind": "client", "error": True}),
    document("pay", "b3", 20, 30, parentSpanID="b2", tags=tags(error="false")),
]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{json.dumps(source)}\n" for source in DOCUMENTS),
        "".join(f"{json.dumps({'_index': 'x', '_source': source})}\n" for source in DOCUMENTS),
        json.dumps(
            {"took": 1, "hits": {"hits": [{"_source": source} for source in DOCUMENTS]}}, indent=2
        ),
    ],
    ids=["bare", "exported", "answer of a search"],
)
def test_jaeger_in_elasticsearch(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, "a.json", text)
    assert found["span"] == ["shop: GET / (server)", "shop: pay (client)", "shop: pay"]
    assert found["start_ns"] == [1_000 * (START + start) for start in (0, 10, 20)]
    assert found["duration_ns"] == [100_000, 50_000, 30_000]
    assert found["ok"] == [True, False, True]
    assert found["span_id"] == ["b1", "b2", "b3"]
    assert found["parent_id"] == [None, "b1", "b2"]


def test_broken_lines_of_elasticsearch_are_counted(tmp_path: Path) -> None:
    text = f"{json.dumps(DOCUMENTS[0])}\n{{\n{json.dumps({'_index': 'x'})}\n"
    found = read(tmp_path, "a.json", text)
    assert found["span"] == ["shop: GET / (server)"]
    assert found["warnings"] == ["1 row without a usable time: left out"]


def names(tmp_path: Path, text: str, key: str) -> set[str]:
    path = tmp_path / "traces.json"
    path.write_text(text)
    assert detect(path) in TRACES
    options = ImportOptions(group_by=key)
    return {run.span for run in read_files({"a": [path], "b": [path]}, "a", options=options).runs}


def test_spans_grouped_by_an_attribute(tmp_path: Path) -> None:
    def tier(**value: Any) -> dict[str, Any]:
        return {"attributes": [{"key": "the.tier", "value": value}]}

    spans = [
        span("buy", 0, 1, **tier(stringValue='a"b')),
        span("buy", 1, 1, **tier(intValue="5")),
        span("buy", 2, 1, **tier(boolValue=True)),
        span("buy", 3, 1),
    ]
    buy = "shop: buy (server)"
    assert names(tmp_path, otlp(spans), "the.tier") == {
        buy, f'{buy} [a"b]', f"{buy} [5]", f"{buy} [true]"
    }  # fmt: skip
    # What the resource has holds for all of its spans, unless they have their own.
    assert names(tmp_path, otlp(spans), "host.cpus") == {f"{buy} [2]"}
    assert names(tmp_path, json.dumps(CALL), "error") == {
        "shop: get / (server)", "shop: pay (client) [timeout]", "bank: pay (server)", "select",
    }  # fmt: skip
    text = "".join(f"{json.dumps(source)}\n" for source in DOCUMENTS)
    assert names(tmp_path, text, "error") == {
        "shop: GET / (server)", "shop: pay (client) [true]", "shop: pay [false]"
    }  # fmt: skip


def test_an_attribute_that_no_span_has(tmp_path: Path) -> None:
    some = {"attributes": [{"key": "tier", "value": {"stringValue": "gold"}}]}
    process = {"p": {"serviceName": "shop", "tags": tags(zone="a")}}
    spans = [document("GET /", "b1", 0, 9, tags=tags(tier="gold")) | {"processID": "p"}]
    del spans[0]["startTimeMillis"]
    texts = {
        otlp([span("buy", 0, 1, **some)]): "host.cpus, service.name, tier",
        json.dumps(CALL): "error",
        "".join(f"{json.dumps(source)}\n" for source in DOCUMENTS): "error, span.kind",
        json.dumps({"data": [{"spans": spans, "processes": process}]}): "tier, zone",
    }
    for text, there in texts.items():
        message = f"^--group-by: no span has the attribute 'Tier'; there are {there}$"
        with pytest.raises(InputError, match=message):
            names(tmp_path, text, "Tier")


def test_an_attribute_that_no_span_of_one_file_has(tmp_path: Path) -> None:
    for name in ("old", "new"):
        some = {"attributes": [{"key": name, "value": {"stringValue": "gold"}}]}
        (tmp_path / name).write_text(otlp([span("buy", 0, 1, **some)]))
    paths = {name: [tmp_path / name] for name in ("old", "new")}
    warnings = read_files(paths, "old", options=ImportOptions(group_by="old")).warnings
    assert any("no span has the attribute 'old'; there are host.cpus, new" in x for x in warnings)


def test_only_spans_have_attributes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"start_time,response_time\n{T},5\n")
    with pytest.raises(InputError, match="--group-by: the format locust has no attributes"):
        read_files({"a": [path], "b": [path]}, "a", options=ImportOptions(group_by="x"))
    with pytest.raises(InputError, match="--group-by: is empty"):
        ImportOptions(group_by="")


def test_a_span_that_was_sent_again_counts_once(tmp_path: Path) -> None:
    first, later = span("buy", 0, 1), span("buy", 5, 1)
    found = read(tmp_path, "a.jsonl", otlp([first, first, later, span("pay", 0, 1)]))
    assert sorted(found["start_ns"]) == [T * 10**9, T * 10**9, T * 10**9 + 5]
    assert found["warnings"] == ["1 row equal to an earlier one with its id: left out"]
