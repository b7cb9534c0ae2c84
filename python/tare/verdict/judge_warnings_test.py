# SPDX-License-Identifier: Apache-2.0
"""What a judgement warns of, and what it notes, beside its verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tare.samples.model import Run
from tare.verdict import judge
from tare.verdict.judge_test import blocks, noisy, run


def test_places_without_a_baseline_or_a_condition_are_told() -> None:
    experiment = blocks(noisy(1.0))
    alone = [run("hook", block, environment="vm") for block in range(1, 9)]
    idle = [run("plain", block, environment="netns") for block in range(1, 9)]
    odd = [
        replace(original, span="pay")
        for original in experiment.runs
        if original.condition == "hook"
    ]
    found = judge(replace(experiment, runs=(*experiment.runs, *alone, *idle, *odd)))
    assert {comparison.environment for comparison in found.comparisons} == {"host"}
    assert [line for line in found.warnings if "no verdict" in line] == [
        "host: no 'pay' of the baseline 'plain': no verdict for 'hook'",
        "netns: no runs of 'hook': no verdict",
        "vm: no runs of the baseline 'plain': no verdict for 'hook'",
    ]


def test_order_that_is_confounded_is_told() -> None:
    def starts(at: Callable[[Run], int]) -> Sequence[str]:
        whole = blocks(noisy(1.1))
        moved = tuple(replace(run, started_ns=at(run), ended_ns=at(run) + 5) for run in whole.runs)
        return judge(replace(whole, runs=moved)).warnings

    later = starts(lambda run: run.block * 10 + 1_000 * (run.condition == "hook"))
    assert any("every run of 'plain' came before every run of 'hook'" in line for line in later)
    second = starts(lambda run: run.block * 1_000 + 10 * (run.condition == "hook"))
    assert any("'plain' always ran right before 'hook'" in line for line in second)
    assert not starts(
        lambda run: run.block * 1_000 + 10 * ((run.condition == "hook") != (run.block == 5))
    )
    assert not starts(lambda run: run.block * 10)


def test_a_failed_run_without_times_hides_no_confounding() -> None:
    whole = blocks(noisy(1.1))
    moved = [
        replace(original, started_ns=1_000 * (original.condition == "hook"))
        for original in whole.runs
    ]
    timed = [replace(original, ended_ns=(original.started_ns or 0) + 5) for original in moved]
    failed = replace(run("hook", 3, reason="crashed"), started_ns=None, ended_ns=None)
    runs = tuple(failed if original.run == failed.run else original for original in timed)
    assert any("order is confounded" in line for line in judge(replace(whole, runs=runs)).warnings)


def test_failures_and_left_out_load_are_told() -> None:
    whole = blocks(noisy(1.1))
    bad = replace(whole.runs[1], errors=50, left_out=0.25)
    notes = judge(replace(whole, runs=(whole.runs[0], bad, *whole.runs[2:]))).notes
    assert any("'plain' 0 of 40,000 (0.00 %), 'hook' 50 of 40,000 (0.12 %)" in x for x in notes)
    assert any("most in one run: 25.0 %" in note for note in notes)


def test_mean_and_median_that_disagree_are_told() -> None:
    notes = judge(blocks(lambda _: {"p50": 1.03, "mean": 0.95})).notes
    assert any("its median differs by +3.0 %, its mean by -5.0 %" in line for line in notes)
