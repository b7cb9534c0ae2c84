# SPDX-License-Identifier: Apache-2.0
"""What two conditions must have in common besides the condition, in verdicts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tare.samples.model import Experiment, LoadStats, Part, Run, Traced
from tare.verdict import Comparison, judge
from tare.verdict.judge_test import blocks, noisy, primary


def conducted(effect: float, how: Callable[[Run], LoadStats]) -> Comparison:
    """A hook of so much effect, whose runs and those of the baseline went as `how` says."""
    of = blocks(noisy(effect))
    return primary(judge(replace(of, runs=tuple(replace(x, load_stats=how(x)) for x in of.runs))))


def load(arrivals: float, others: float) -> Callable[[Run], LoadStats]:
    """Of the hook; the baseline has 100 a second, of which each meets one other."""
    return lambda run: LoadStats(
        arrivals=arrivals if run.condition == "hook" else 100.0,
        others=others if run.condition == "hook" else 1.0,
    )


@pytest.mark.parametrize(
    ("effect", "arrivals", "others", "verdict"),
    [
        (0.9, 80.0, 0.6, "invalid"),  # as in the thesis: faster, since less came
        (1.0, 80.0, 0.6, "invalid"),  # what is slower may look unchanged
        (1.1, 80.0, 0.6, "slower"),  # slower although less came
        (1.1, 120.0, 1.5, "invalid"),
        (0.9, 120.0, 1.5, "faster"),
        (1.1, 80.0, 1.5, "slower"),  # itself slower: more are under way, of fewer that came
        (1.1, 100.0, 1.1, "slower"),  # the same at a rate
        (0.9, 80.0, 1.0, "faster"),  # as many under way as before: a closed loop of two users
        (0.9, 80.0, 0.97, "faster"),  # within the budget
    ],
)
def test_another_load_makes_a_span_invalid_where_it_may_be_the_effect(
    effect: float, arrivals: float, others: float, verdict: str
) -> None:
    found = conducted(effect, load(arrivals, others))
    assert found.verdict == verdict
    change = "-" if arrivals < 100 else "+"
    told = f"another load of 'request': {change}20.0 % arrivals per second"
    assert (told in found.reason) == (verdict == "invalid")


@pytest.mark.parametrize(
    ("effect", "arrivals", "others", "calls", "verdict"),
    [
        (1.1, 200.0, 3.0, 2.0, "slower"),
        (1.0, 200.0, 3.0, 2.0, "unchanged"),
        (0.9, 50.0, 0.5, 0.5, "faster"),
        (1.1, 200.0, 3.0, 1.0, "invalid"),  # twice as many requests
        (1.1, 120.0, 1.5, 2.0, "invalid"),  # fewer requests, of more calls
    ],
)
def test_a_load_that_the_application_makes_itself_is_part_of_the_effect(
    effect: float, arrivals: float, others: float, calls: float, verdict: str
) -> None:
    """A request of the baseline makes one such call, and a request of the hook so many."""
    of = blocks(noisy(effect))
    runs = tuple(replace(run, load_stats=load(arrivals, others)(run)) for run in of.runs)
    traces = {
        (run.run, "root"): Traced(
            requests=1_000,
            mean_ns=1.0,
            parts={run.span: Part(1.0, 1.0, calls if run.condition == "hook" else 1.0)},
            structures={1: 1_000},
            broken=0.0,
            quantiles={"p50": 1.0, "p99": 1.0},
        )
        for run in runs
    }
    empty = {1: frozenset[int]()}
    found = primary(judge(replace(of, runs=runs, traces=traces, structures=empty)))
    assert found.verdict == verdict
    told = f"A request makes {calls:.2f} of these calls instead of 1.00"
    assert (told in found.reason) == (verdict != "invalid")


def test_one_user_at_a_time_meets_nobody_whatever_the_rate() -> None:
    def alone(run: Run) -> LoadStats:
        return LoadStats(arrivals=70.0 if run.condition == "hook" else 100.0)

    assert conducted(1.4, alone).verdict == "slower"


@pytest.mark.parametrize(
    ("effect", "error_ns", "verdict"),
    [(1.1, 12_000.0, "invalid"), (1.1, 9_000.0, "slower"), (1.0, 4_000.0, "invalid"),
     (1.0, 3_000.0, "unchanged")],
)  # fmt: skip
def test_clocks_must_be_surer_than_what_is_said(
    effect: float, error_ns: float, verdict: str
) -> None:
    """The baseline's median is about 109 µs, the budget 3 % of it."""
    found = conducted(
        effect, lambda run: LoadStats(clock_error_ns=error_ns if run.block == 3 else 0.0)
    )
    assert found.verdict == verdict
    assert ("the clocks may be off by" in found.reason) == (verdict == "invalid")


@pytest.mark.parametrize(
    ("endpoint", "where", "option"),
    [
        ("http://127.0.0.1:80", "run 2 (plain, block 1)", "max_errors of the plan"),
        ("a.json", "a.json", "--max-errors"),
    ],
)
def test_lost_parents_are_one_reason_with_the_option_that_allows_them(
    endpoint: str, where: str, option: str
) -> None:
    of = blocks(noisy(1.1))
    runs = [
        replace(
            run, span=span, endpoint=endpoint, load_stats=LoadStats(orphans=0.02 + run.block / 1e3)
        )
        for run in of.runs
        for span in ("order", "pay")
    ]
    judgement = judge(replace(of, runs=tuple(runs)))
    (reason,) = {
        comparison.reason for comparison in judgement.comparisons if comparison.role == "primary"
    }
    assert f"16 runs failed ('plain': 8 runs, the first is {where}: 2.10% of the spans" in reason
    assert f"above 1.00%: record complete traces, or allow more with {option}; 'hook'" in reason
    assert sum("lack their parent span" in line for line in judgement.warnings) == 2


@pytest.mark.parametrize(
    ("load_stats", "reason"),
    [
        (LoadStats(behind=0.05), "the rate was 5.0% below the intended rate"),
        (LoadStats(orphans=0.02), "2.00% of the spans lack their parent span"),
    ],
)
def test_runs_that_were_badly_conducted_do_not_count(load_stats: LoadStats, reason: str) -> None:
    bad = conducted(1.1, lambda run: load_stats if run.block < 4 else LoadStats())
    assert bad.verdict == "invalid"
    assert f"run 2 (plain, block 1): {reason}" in bad.reason
    few = conducted(1.1, lambda run: load_stats if run.block < 3 else LoadStats())
    assert (few.verdict, few.runs_condition) == ("slower", 6)


@pytest.mark.parametrize("load_stats", [LoadStats(behind=0.015), LoadStats(orphans=0.005)])
def test_runs_that_were_conducted_almost_as_intended_count(load_stats: LoadStats) -> None:
    assert conducted(1.1, lambda _: load_stats).runs_condition == 8


def lines(of: Experiment, how: Callable[[Run], LoadStats]) -> tuple[str, ...]:
    return judge(replace(of, runs=tuple(replace(x, load_stats=how(x)) for x in of.runs))).lines


def test_what_is_doubtful_is_told() -> None:
    of = blocks(noisy(1.1))
    (told,) = lines(of, lambda run: LoadStats(lag=0.3 if run.condition == "hook" else 0.02))
    assert told == (
        "host: requests were sent late by a large share of the response time: 'plain' 2.0 %,"
        " 'hook' 30.0 %; all users of the load were busy, or the generator was late. Lower the"
        " rate, or add users"
    )
    (told,) = lines(of, lambda run: LoadStats(orphans=0.001 * (run.block == 2)))
    assert told == "host: 2 runs with spans that lack their parent span"
    (told,) = lines(of, lambda run: LoadStats(orphans=0.005 * (run.block == 2)))
    assert told == (
        "host: incomplete traces: in 2 runs, up to 0.50% of the spans lack their parent span; the"
        " exporters drop spans (enlarge their queues), or the recording cut traces"
    )
    assert lines(of, lambda _: LoadStats(lag=0.05)) == ()


def with_spans(of: Experiment, requests: int) -> Experiment:
    inner = (replace(run, span="pay", requests=requests) for run in of.runs)
    return replace(of, runs=(*of.runs, *inner))


def test_a_run_that_lacks_a_span_of_the_others_is_named_and_does_not_count() -> None:
    of = with_spans(blocks(noisy(1.1)), 5_000)
    some = tuple(
        run for run in of.runs if (run.span, run.condition) != ("pay", "hook") or run.block > 3
    )
    judged = judge(replace(of, runs=some))
    whole, part = (comparison for comparison in judged.comparisons if comparison.role == "primary")
    assert (whole.verdict, whole.runs_condition) == ("slower", 8)
    assert (part.verdict, part.runs_condition) == ("invalid", 5)
    assert "has no 'pay', but other runs of 'hook' have many" in part.reason


def test_a_span_that_is_seldom_there_may_be_absent() -> None:
    of = with_spans(blocks(noisy(1.1)), 3)
    some = tuple(run for run in of.runs if (run.span, run.run) != ("pay", 3))
    judged = judge(replace(of, runs=some))
    assert not any("has no 'pay'" in line for line in judged.warnings)


def test_a_run_of_which_nothing_is_there_leaves_no_sure_verdict() -> None:
    of = blocks(noisy(1.0), count=10)
    gone = tuple(
        replace(run, valid=False, gone=True, reason="its requests are not in the result")
        if run.run == 5
        else run
        for run in of.runs
    )
    missing = tuple(run for run in of.runs if run.run != 5)
    for runs, what in ((gone, "run 5"), (missing, "block 2")):
        found = primary(judge(replace(of, runs=runs)))
        assert (found.verdict, found.runs_condition) == ("inconclusive", 9)
        assert f"{what} of 'hook' has no data and no recorded failure" in found.reason
    failed = tuple(replace(run, gone=False) for run in gone)
    assert primary(judge(replace(of, runs=failed))).verdict == "unchanged"
