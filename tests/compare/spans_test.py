# SPDX-License-Identifier: Apache-2.0
"""Spans of traces are judged from the outer to the inner."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare.command_test import tare

REQUESTS = 300
RUNS = 6
SPANS = ("GET /", "pay")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("noise", "words"),
    [(0.3, ["inconclusive", "slower"]), (0.0, ["slower", "slower"])],
    ids=["the whole is too noisy", "the whole is slower, too"],
)
def test_a_noisy_whole_does_not_hide_a_part_that_is_slower(
    tmp_path: Path, noise: float, words: list[str]
) -> None:
    generator = np.random.default_rng(4)
    sides = {}
    for condition, effect in (("old", 1.0), ("new", 1.2)):
        paths = [tmp_path / f"{condition}{run}.json" for run in range(RUNS)]
        for path in paths:
            whole = effect * generator.normal(1, noise)
            path.write_text(json.dumps(jaeger(whole * 10_000, effect * 4_000, generator)))
        sides[condition] = f"{condition}={','.join(map(str, paths))}"
    done = tare("--baseline", sides["old"], sides["new"], "--json")
    assert done.returncode == 0, done.stderr
    found = [
        comparison
        for comparison in json.loads(done.stdout)["comparisons"]
        if comparison["role"] == "primary"
    ]
    assert [comparison["span"] for comparison in found] == [*SPANS]
    assert [comparison["verdict"] for comparison in found] == words
    assert found[1]["p"] <= 0.05


def test_a_part_that_is_faster_because_less_is_sent_to_it(tmp_path: Path) -> None:
    """Three users; each request of both conditions pays alike, and payments hold each other up."""
    sides = {}
    for condition, before_us in (("old", 6_000), ("new", 20_000)):
        paths = [tmp_path / f"{condition}{run}.json" for run in range(RUNS)]
        for run, path in enumerate(paths):
            path.write_text(json.dumps(shop(before_us, np.random.default_rng(run))))
        sides[condition] = f"{condition}={','.join(map(str, paths))}"
    done = tare("--baseline", sides["old"], sides["new"], "--json")
    assert done.returncode == 0, done.stderr
    whole, part = (
        comparison
        for comparison in json.loads(done.stdout)["comparisons"]
        if comparison["role"] == "primary"
    )
    assert (whole["span"], whole["verdict"]) == ("GET /", "slower")
    assert (part["span"], part["verdict"]) == ("pay", "invalid")
    assert part["interval"]["high"] < -0.1
    assert "'new' had another load of 'pay': -" in part["reason"]


def shop(before_us: float, generator: np.random.Generator) -> dict[str, Any]:
    """Requests that pay after so long, 3 at a time; half as long again for each other payment."""
    free, payments, traces = np.zeros(3), [(0.0, 0.0)], []
    for number in range(REQUESTS):
        user = int(free.argmin())
        start = free[user] + before_us * generator.lognormal(0, 0.1)
        others = sum(begun <= start < end for begun, end in payments[-5:])
        took = 4_000 * (1 + others / 2) * generator.lognormal(0, 0.05)
        payments.append((start, start + took))
        times = ((free[user], start + took - free[user]), (start, took))
        traces.append({"spans": [span(number, place, *time) for place, time in enumerate(times)]})
        free[user] = start + took
    return {"data": [trace | {"processes": {}} for trace in traces]}


def span(trace: int, place: int, start_us: float, took_us: float) -> dict[str, Any]:
    """The request itself, or the payment in it."""
    return {
        "traceID": f"{trace:032x}",
        "spanID": f"{place + 1:016x}",
        "operationName": SPANS[place],
        "startTime": 1_700_000_000_000_000 + round(start_us),
        "duration": round(took_us),
        "references": [{"refType": "CHILD_OF", "spanID": f"{1:016x}"}] * place,
    }


def jaeger(whole: float, part: float, generator: np.random.Generator) -> dict[str, Any]:
    """Traces of a request and the payment in it, which take so many µs."""
    traces = []
    for number in range(REQUESTS):
        began = number * 20_000
        spans = [
            span(number, place, began + place, took * generator.gamma(100, 1 / 100))
            for place, took in enumerate((whole, part))
        ]
        traces.append({"spans": spans, "processes": {}})
    return {"data": traces}
