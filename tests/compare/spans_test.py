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


@pytest.mark.parametrize(
    ("noise", "words"),
    [(0.3, ["inconclusive", "inconclusive"]), (0.0, ["slower", "slower"])],
    ids=["the whole is too noisy", "the whole is slower, too"],
)
def test_a_part_is_judged_where_the_whole_differs(
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
    found = [one for one in json.loads(done.stdout)["comparisons"] if one["role"] == "primary"]
    assert [one["span"] for one in found] == [*SPANS]
    assert [one["verdict"] for one in found] == words
    told = "a part is judged only where the whole differs, and 'GET /' does not surely"
    assert (told in found[1]["reason"]) == (words[0] == "inconclusive")
    assert found[1]["p"] <= 0.05


def jaeger(whole: float, part: float, generator: np.random.Generator) -> dict[str, Any]:
    """Traces of a request and the payment in it, which take so many µs."""
    traces = []
    for number in range(REQUESTS):
        spans = []
        for place, (name, took) in enumerate(zip(SPANS, (whole, part), strict=True)):
            spans.append(
                {
                    "traceID": f"{number:032x}",
                    "spanID": f"{place + 1:016x}",
                    "operationName": name,
                    "startTime": 1_700_000_000_000_000 + number * 20_000 + place,
                    "duration": round(took * generator.gamma(100, 1 / 100)),
                    "references": [{"refType": "CHILD_OF", "spanID": f"{1:016x}"}] * place,
                }
            )
        traces.append({"spans": spans, "processes": {}})
    return {"data": traces}
