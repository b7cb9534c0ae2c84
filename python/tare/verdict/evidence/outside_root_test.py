# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping, Sequence

import pytest

from tare.samples.model import REQUEST, Experiment, Run, Traced
from tare.verdict.evidence.outside_root import outside_root
from tare.verdict.traces import OutsideRoot


def found(roots: Sequence[Mapping[str, int]], *, valid: bool = True) -> list[OutsideRoot]:
    """Of one run for each entry of `roots`, the number of requests of its root spans.

    The p50 of round trips is 100, 110 ..., and that of root spans 10, 20 ... below it.
    """
    runs, traces = [], {}
    for number, of in enumerate(roots):
        p50 = 100.0 + 10 * number
        ends = {"p50": p50, "p99": 10 * p50}
        runs.append(
            Run("host", "old", number, number, REQUEST, 9, 0, 9, None, ends, valid=valid),
        )
        quantiles = {"p50": p50 - 10 * (number + 1), "p99": 9 * p50}
        for root, requests in of.items():
            traces[number, root] = Traced(requests, p50, {}, {}, 0.0, quantiles)
    experiment = Experiment(tuple(runs), "old", paired=True, budget=0.03, traces=traces)
    return list(outside_root(experiment))


def test_the_difference_is_the_mean_over_runs() -> None:
    p50, p99 = found([{"order": 9}] * 3)
    assert (p50.root, p50.metric, p50.runs, p99.metric) == ("order", "p50", 3, "p99")
    assert (p50.round_trip_ns, p50.root_ns, p50.difference_ns) == (110, 90, 20)
    # Student's t with 2 degrees of freedom is 4.303 at 97.5 %.
    assert p50.low == pytest.approx(20 - 4.303 * 10 / 3**0.5, rel=1e-3)
    assert p50.high == pytest.approx(20 + 4.303 * 10 / 3**0.5, rel=1e-3)
    assert p99.difference_ns == 110


def test_one_run_has_no_interval() -> None:
    p50, _ = found([{"order": 9}])
    assert (p50.difference_ns, p50.low, p50.high) == (10, None, None)


def test_runs_with_several_root_spans_do_not_count() -> None:
    p50, _ = found([{"order": 9}, {"order": 5, "health": 4}, {"order": 95, "health": 5}])
    assert p50.runs == 2


def test_without_traces_or_valid_runs_there_is_nothing() -> None:
    assert found([{}, {}]) == []
    assert found([{"order": 9}], valid=False) == []
