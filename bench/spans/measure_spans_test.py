# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from bench.cases import read_bars
from bench.spans.measure import Turn, answers_of, cases

OWN = [Turn(512, 512, 9e5, 1.1, 0.2), Turn(1_024, 1_024, 8e5, 1.2, 0.3)]
PEER = [Turn(1_000, 900, 1e5, 9.0, 0.1), Turn(1_000, 750, 2e5, 8.0, 0.1)]


def test_each_bar_has_a_case() -> None:
    names = {
        case.name
        for protocol in ("grpc", "http")
        for load in ("", "-50k")
        for case in cases(f"{protocol}{load}", {"tare": OWN}, has_rate=not load)
    }
    assert names >= read_bars("spans").keys()


def test_lost_spans_are_a_share_of_the_acknowledged_ones() -> None:
    found = {
        case.name: case for case in cases("grpc", {"tare": OWN, "jaeger": PEER}, has_rate=True)
    }
    assert found["grpc-lost"].values == [0, 0]
    assert found["grpc-lost-jaeger"].values == pytest.approx([0.1, 0.25])
    assert found["grpc-jaeger"].ratio == pytest.approx((9 + 4) / 2)
    assert found["grpc-cpu-jaeger"].peer_values == [9.0, 8.0]


def test_failed_requests_are_not_acknowledged() -> None:
    target = {"requests": 10, "errors": 3, "duration_s": 2.5}
    assert answers_of(json.dumps({"targets": [target]})) == (7, 2.5)
