# SPDX-License-Identifier: Apache-2.0
"""What a reader is told of how samples were looked at."""

import numpy as np
import pyarrow as pa
import pytest

from tare.errors import InputError
from tare.samples.describe.warm_up_cuts import HALF, CutSummaries, CutSummary, look
from tare.samples.sql.engine import connect

RUNS, PLACES = 4, 200


def test_bins_are_told_with_their_bound() -> None:
    assert CutSummaries({}, {}, {}, {}, CutSummary({}, {}), {}).told() == ()
    (told,) = CutSummaries({}, {}, {}, {}, CutSummary({}, {}, {("", "request"): 0.0123}), {}).told()
    assert "distances between runs (KS) are within 0.012 of the exact distances" in told
    errors = {("host", "request"): 0.0123, ("host", "retry"): 0.5}
    (told,) = CutSummaries({}, {}, {}, {}, CutSummary({}, {}, errors), {}).told()
    assert "(KS) are within 0.5 (host retry), 0.012 (host) of the exact distances" in told


def looked_at(steps: list[int]) -> CutSummaries:
    """Two runs a condition, each recorded in its own step; one request in fifty has no answer."""
    place = np.tile(np.arange(PLACES), RUNS)
    run = np.repeat(np.arange(1, RUNS + 1), PLACES)
    step = np.array(steps)[run - 1]
    drawn = np.random.default_rng(1).integers(10_000, 20_000, RUNS * PLACES)
    ok = place % 50 != 0
    table = {
        "run": run,
        "span": ["request"] * run.size,
        "place": place,
        "latency_ns": pa.array(np.where(ok, drawn * step, 0), mask=~ok),
        "ok": ok,
    }
    samples = connect().create_table("samples", pa.table(table))
    return look(samples, {number: ("host", "ab"[number % 2]) for number in range(1, RUNS + 1)})


@pytest.mark.parametrize(
    ("steps", "coarsest"), [([1, 1, 1, 1], 1), ([1, 1, 100, 1], 100), ([1000, 10, 10, 100], 1000)]
)
def test_each_run_has_the_step_that_its_times_were_rounded_to(
    steps: list[int], coarsest: int
) -> None:
    found = looked_at(steps).steps
    assert found == {(run, "request"): step for run, step in enumerate(steps, 1) if step > 1}
    assert max(found.values(), default=1) == coarsest


def test_distances_are_those_of_the_cut_that_a_verdict_is_about() -> None:
    found = looked_at([1, 1, 1, 1])
    place = "host", "request"
    assert set(found.at_cut.distances[place].of) == {"ks", "ad", "cvm", "w1"}
    assert found.others[HALF].distances == {}


def test_more_spans_than_can_be_compared_are_refused() -> None:
    numbers = range(1_001)
    columns = {
        "run": [1] * len(numbers),
        "span": [f"request {number}" for number in numbers],
        "place": [0] * len(numbers),
        "latency_ns": [1] * len(numbers),
        "ok": [True] * len(numbers),
    }
    samples = connect().create_table("samples", pa.table(columns))
    with pytest.raises(InputError, match="have 1,001 spans, and at most 1,000 are compared"):
        look(samples, {1: ("host", "a")})
