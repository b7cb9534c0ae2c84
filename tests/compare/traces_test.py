# SPDX-License-Identifier: Apache-2.0
"""Somebody else's traces: which spans a change is in, and whether requests call the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import in_process
from tests.compare.command_test import tare

RUNS, REQUESTS = 6, 200
ORDER, PAY = "shop: POST /orders/{id}/confirm (server)", "bank: POST /payments (server)"
UPDATE, CACHE = "bank: UPDATE accounts (client)", "shop: GET cache:orders (client)"
MS = 1_000_000
BUSY = 0.3
"""Milliseconds that a payment takes longer."""


def traces(generator: np.random.Generator, busy: float, cached: float) -> Iterator[str]:
    """Lines of OTLP: orders that pay, which updates, and of which a share ask a cache first."""
    speed = generator.normal(1, 0.005)
    for number in range(REQUESTS):
        cache, select, update, pay = speed * generator.normal((0.5, 1, 2, 4), 0.05)
        pay += busy
        if generator.random() >= cached:
            cache = 0.0
        spans: list[tuple[str, str, int, int | None, float, float]] = []
        spans.append(
            ("shop", "POST /orders/{id}/confirm", 2, None, 0.0, cache + select + pay + 0.4)
        )
        spans.append(("bank", "POST /payments", 2, 0, cache + select, pay))
        spans.append(("bank", "UPDATE accounts", 3, 1, cache + select + 0.5, update))
        if cache:
            spans.append(("shop", "GET cache:orders", 3, 0, 0.1, cache))
        resources = [
            {
                "resource": {"attributes": [text("service.name", service)]},
                "scopeSpans": [{"spans": [
                    {
                        "traceId": f"{number:032x}", "spanId": f"{place + 1:016x}", "name": name,
                        "kind": kind, "parentSpanId": "" if up is None else f"{up + 1:016x}",
                        "startTimeUnixNano": str(10**18 + int((20 * number + start) * MS)),
                        "endTimeUnixNano": str(10**18 + int((20 * number + start + took) * MS)),
                        "attributes": [text("tier", "gold" if number % 2 else "free")],
                    }
                    for place, (its, name, kind, up, start, took) in enumerate(spans)
                    if its == service
                ]}],
            }
            for service in ("shop", "bank")
        ]  # fmt: skip
        yield json.dumps({"resourceSpans": resources}) + "\n"


def text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder of runs before payments became slower and caches were asked less, and one after."""
    folder = tmp_path_factory.mktemp("traces")
    for side, (name, busy, cached) in enumerate((("old", 0.0, 0.9), ("new", BUSY, 0.6))):
        (folder / name).mkdir()
        for run in range(RUNS):
            lines = traces(np.random.default_rng([side, run]), busy, cached)
            (folder / name / f"{run}.jsonl").write_text("".join(lines))
    return [folder / "old", folder / "new"]


def test_a_change_is_in_the_span_that_made_it(sides: list[Path]) -> None:
    done = tare(*sides, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    words = {
        comparison["span"]: comparison["verdict"]
        for comparison in found["comparisons"]
        if comparison["role"] == "primary"
    }
    assert words[PAY] == "slower"
    assert words[UPDATE] == "unchanged"
    (decomposition,) = found["traces"]
    assert decomposition["root"] == ORDER
    assert decomposition["requests"] == {"baseline": RUNS * REQUESTS, "condition": RUNS * REQUESTS}
    parts = {part["span"]: part["critical_ns"] for part in decomposition["parts"]}
    assert sum(part["difference"] for part in parts.values()) == pytest.approx(
        decomposition["mean_ns"]["difference"]
    )
    assert parts[PAY]["low"] < BUSY * MS < parts[PAY]["high"]
    assert parts[PAY]["p_adjusted"] <= 0.05
    assert parts[UPDATE]["low"] < 0 < parts[UPDATE]["high"]
    # Its own time, without that of the update inside of it.
    payment = next(part for part in decomposition["parts"] if part["span"] == PAY)
    assert payment["self_ns"]["baseline"] == pytest.approx(2 * MS, rel=0.02)
    cache = next(part for part in decomposition["parts"] if part["span"] == CACHE)
    assert cache["calls"]["difference"] == pytest.approx(-0.3, abs=0.03)
    structures = decomposition["structures"]
    assert structures["verdict"] == "changed"
    assert [share["calls"] for share in structures["shares"]] == [
        "with the usual calls", f"without '{CACHE}'"
    ]  # fmt: skip


def test_a_service_that_is_called_more_often_is_named(sides: list[Path], tmp_path: Path) -> None:
    twice = tmp_path / "new"
    twice.mkdir()
    for file in sides[0].iterdir():
        lines = []
        for line in file.read_text().splitlines():
            trace = json.loads(line)
            (scope,) = trace["resourceSpans"][1]["scopeSpans"]
            update = scope["spans"][1]
            scope["spans"].append(update | {"spanId": f"{99:016x}"})
            lines.append(json.dumps(trace) + "\n")
        (twice / file.name).write_text("".join(lines))
    done = tare(sides[0], twice, "--json")
    structures = json.loads(done.stdout)["traces"][0]["structures"]
    assert structures["verdict"] == "changed"
    assert f"calls of '{UPDATE}' per request: 1.00 -> 2.00" in structures["reason"]


def test_conditions_without_a_common_span_are_an_error(sides: list[Path], tmp_path: Path) -> None:
    lower = tmp_path / "new"
    lower.mkdir()
    for file in sides[0].iterdir():
        text = file.read_text()
        for name in ("POST", "UPDATE", "GET"):
            text = text.replace(name, name.lower())
        (lower / file.name).write_text(text)
    done = tare(sides[0], lower, "--fail-on", "slower")
    assert done.returncode == 2
    assert "the conditions have no span in common" in done.stderr


@pytest.mark.exhaustive
def test_a_pipeline_that_loses_one_span_in_a_hundred_is_reported(
    sides: list[Path], tmp_path: Path
) -> None:
    lossy = tmp_path / "new"
    lossy.mkdir()
    generator = np.random.default_rng(1)
    for file in sides[1].iterdir():
        kept = []
        for line in file.read_text().splitlines():
            trace = json.loads(line)
            for resource in trace["resourceSpans"]:
                (scope,) = resource["scopeSpans"]
                scope["spans"] = [part for part in scope["spans"] if generator.random() >= 0.01]
            kept.append(json.dumps(trace) + "\n")
        (lossy / file.name).write_text("".join(kept))
    whole, lost = (tare(sides[0], side, "--json") for side in (sides[1], lossy))
    told = [" ".join(json.loads(done.stdout)["warnings"]) for done in (whole, lost)]
    assert ["incomplete traces" in text for text in told] == [False, True]


def test_the_table_fits_a_terminal(sides: list[Path]) -> None:
    done = in_process.tare("compare", *sides, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    answer = " ".join(done.stdout.split())
    assert answer.startswith(f"new, {ORDER} against old, 1,200 + 1,200 traces: requests take ")
    assert f"longer, explained by '{PAY}' (+3" in answer.partition("mean time on")[0]
    start = next(place for place, line in enumerate(lines) if "mean time on" in line)
    shown = "\n".join(lines[start:])
    assert "bank: POST" in shown
    assert "\n  calls changed: requests " in shown


@pytest.mark.exhaustive
def test_all_forms_explain_the_change_with_the_same_sentence(sides: list[Path]) -> None:
    (traced,) = json.loads(tare(*sides, "--json").stdout)["traces"]
    comment = tare(*sides, "--markdown").stdout.replace("\\", "")
    terminal = " ".join(tare(*sides).stdout.split())
    assert f"explained by '{PAY}'" in traced["explained"]
    assert traced["explained"] in terminal
    assert traced["explained"] in comment


def test_one_file_of_each_side(sides: list[Path]) -> None:
    done = tare(*(side / "0.jsonl" for side in sides))
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "calls inconclusive: 1 run per condition" in shown
    assert "; too few runs to prove it" in shown
    assert shown.count("1 run per condition cannot prove any change") == 1
    assert "whole request" in shown


def test_spans_by_an_attribute(sides: list[Path]) -> None:
    done = tare(*sides, "--json", "--group-by", "tier")
    assert done.returncode == 0, done.stderr
    roots = {
        decomposition["root"]: decomposition for decomposition in json.loads(done.stdout)["traces"]
    }
    assert [*roots] == [f"{ORDER} [{tier}]" for tier in ("free", "gold")]
    assert all(
        decomposition["requests"]["baseline"] == RUNS * REQUESTS / 2
        for decomposition in roots.values()
    )


def test_only_files_can_be_grouped(sides: list[Path], tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    done = tare(tmp_path, "--group-by", "tier")
    assert done.returncode == 2
    assert "--group-by: for files only" in done.stderr
    done = tare(*sides, "--group-by", "")
    assert done.returncode == 2
    assert "--group-by: is empty" in done.stderr
