# SPDX-License-Identifier: Apache-2.0
"""`tare spans show`: what a file of traces has, and what is wrong with it."""

import json
from pathlib import Path
from typing import Any

from tests import in_process
from tests.in_process import Done

START = 1_700_000_000_000_000
"""In µs."""


def show(*arguments: object) -> Done:
    return in_process.tare("spans", "show", *arguments)


def span(trace: int, own: str, name: str, start: int, took: int, *, up: str = "") -> dict[str, Any]:
    return {
        "traceID": f"{trace:x}", "spanID": own, "operationName": name, "startTime": START + start,
        "duration": took, "references": [{"refType": "CHILD_OF", "spanID": up}] if up else [],
        "tags": [{"key": "error", "value": took > 900}], "processID": "p1",
    }  # fmt: skip


def written(path: Path, spans: list[dict[str, Any]]) -> Path:
    trace = {"spans": spans, "processes": {"p1": {"serviceName": "shop"}}}
    path.write_text(json.dumps({"data": [trace]}))
    return path


def test_spans_and_their_numbers(tmp_path: Path) -> None:
    spans = [
        row
        for trace in range(1, 12)
        for row in (
            span(trace, "a", "GET /", 100_000 * trace, 100 * trace),
            span(trace, "b", "select", 100_000 * trace + 10, 5, up="a"),
            span(trace, "c", "select", 100_000 * trace + 20, 5, up="a"),
        )
    ]
    path = written(tmp_path / "a.json", spans)
    done = show(path, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (file,) = json.loads(done.stdout)["files"]
    assert (file["spans"], file["traces"]) == (33, 11)
    assert abs(file["seconds"] - 1.00002) < 1e-5
    whole, select = file["kinds"]
    assert whole["span"] == "shop: GET /"
    assert (whole["spans"], whole["errors"], whole["per_trace"]) == (11, 2, 1)
    assert whole["p50_ns"] == 600_000
    assert (select["spans"], select["per_trace"], select["p99_ns"]) == (22, 2, 5_000)
    shown = show(path).stdout.splitlines()
    assert shown[0] == f"{path}: 33 spans in 11 traces, 1.00 s"
    assert shown[2].split()[:3] == ["shop:", "GET", "/"]


def test_what_is_wrong_with_traces_is_said(tmp_path: Path) -> None:
    spans = [
        row
        for trace in range(100)
        for row in (
            span(trace, "a", "GET /", 1_000 * trace, 100),
            span(trace, "b", "pay", 1_000 * trace - 50, 5, up="a"),
            span(trace, "c", "select", 1_000 * trace + 20, 5, up="b"),
        )
    ]
    kept = [row for row in spans if row["spanID"] != "b" or row["traceID"] > "1"]
    bad = span(200, "a", "GET /", 0, -5)
    done = show(written(tmp_path / "a.json", [*kept, spans[0], bad]))
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stderr.split())
    assert "1 row without a usable time" in text
    assert "1 row equal to an earlier one with its id: left out" in text
    assert "of the spans lack their parent span" in text
    assert "begin before their parent span" in text


def test_names_are_whole_in_80_columns(tmp_path: Path) -> None:
    paths = [f"/api/v1/customers/{{id}}/orders/{{id}}/{part}/confirm" for part in ("a", "b")]
    spans = [span(1, name[-9], f"GET {name}", 5, 10) for name in (*paths, f"/{'x' * 120}")]
    text = in_process.tare("spans", "show", written(tmp_path / "a.json", spans), COLUMNS="80")
    lines = text.stdout.splitlines()[1:]
    assert max(map(len, lines)) <= 80
    for path in paths:
        assert f"  shop: GET {path}" in lines
    assert "x" * 120 in "".join(line.strip() for line in lines)
    numbers = [line for line in lines if line.endswith("10.0 µs")]
    assert len(numbers) == len(spans)


def test_several_files_and_an_attribute(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name, [span(1, "a", "GET /", 0, took)])
        for name, took in (("a.json", 5), ("b.json", 1_000))
    ]
    done = show(*paths, "--group-by", "error", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["files"]
    names = [file["kinds"][0]["span"] for file in found]
    assert names == ["shop: GET / [false]", "shop: GET / [true]"]
    assert found[0]["kinds"][0]["per_second"] is None
