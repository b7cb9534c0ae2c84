# SPDX-License-Identifier: Apache-2.0
"""Failures cannot pass for latencies: what answered among them says little about the rest."""

from dataclasses import replace

from tare.samples.model import Experiment
from tare.verdict import judge, without_failing
from tare.verdict.judge_test import blocks, noisy, primary
from tare.verdict.rules.fail_on import hits


def failing(count: int, errors: int) -> Experiment:
    """Eight blocks of 5,000 requests, the first `count` runs of the hook with `errors` failures."""
    whole = blocks(noisy(1.0))
    runs = tuple(
        replace(run, errors=errors, endpoint=f"{run.run}.csv")
        if run.condition == "hook" and run.block <= count
        else run
        for run in whole.runs
    )
    return replace(whole, runs=runs)


def test_runs_that_failed_stop_a_pipeline() -> None:
    judged = judge(without_failing(failing(8, 4_950), 0.01))
    assert primary(judged).verdict == "invalid"
    assert "3.csv: 99.00% of the requests failed, above 1.00%" in primary(judged).reason
    assert [word for word, _ in hits(judged, ["invalid"])] == ["invalid"]


def test_what_is_left_out_is_told() -> None:
    judgement = judge(without_failing(failing(1, 51), 0.01))
    told = "host: 3.csv: 1.02% of the requests failed, above 1.00%: the run does not count"
    assert told in judgement.warnings
    found = primary(judgement)
    assert (found.verdict, found.runs_condition) == ("unchanged", 7)


def test_the_limit_itself_is_borne() -> None:
    for experiment, limit in ((failing(8, 50), 0.01), (failing(8, 4_950), 0.99)):
        found = without_failing(experiment, limit)
        assert (found.runs, found.warnings) == (experiment.runs, experiment.warnings)
