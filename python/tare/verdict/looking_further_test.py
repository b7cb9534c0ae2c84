# SPDX-License-Identifier: Apache-2.0
"""What a verdict looks at besides its metric: shapes, other cuts, the control, limits."""

from dataclasses import replace

import numpy as np
import pytest

from tare.samples.describe.warm_up_cuts import SHAPE
from tare.samples.model import Distances, Experiment, Run
from tare.stats.arrays import Array
from tare.stats.distances import between
from tare.stats.ordered_quantiles import OrderedQuantiles
from tare.verdict import Comparison, judge
from tare.verdict.judge import judge_together
from tare.verdict.judgement import Control

BLOCKS = 8
AT = SHAPE


def requests(tail: float = 1.0, level: float = 1.0, seed: int = 1) -> dict[tuple[str, int], Array]:
    """Requests in ns of 8 blocks of `plain` and `hook`; the hook's slowest 8 % times `tail`."""
    generator = np.random.default_rng(seed)
    found = {}
    for block in range(1, BLOCKS + 1):
        drift = generator.normal(0, 0.02)
        for condition in ("plain", "hook"):
            own = np.sort(generator.lognormal(11.5 + drift + generator.normal(0, 0.002), 0.05, 800))
            if condition == "hook":
                own = own * level
                own[int(0.92 * own.size) :] *= tail
            found[condition, block] = own
    return found


def experiment(by_run: dict[tuple[str, int], Array], **more: object) -> Experiment:
    runs = tuple(
        Run(
            environment="host",
            condition=condition,
            block=block,
            run=number,
            span="request",
            requests=values.size,
            errors=0,
            answered=values.size,
            started_ns=None,
            summaries={"p50": float(np.median(values)), "mean": float(values.mean())},
            quantiles=dict(zip(AT, np.quantile(values, AT).tolist(), strict=True)),
        )
        for number, ((condition, block), values) in enumerate(by_run.items(), start=1)
    )
    apart = between([*by_run.values()])
    distances = {("host", "request"): Distances(tuple(run.run for run in runs), apart)}
    return replace(
        Experiment(runs, "plain", paired=True, budget=0.03, distances=distances),
        **more,  # type: ignore[arg-type]
    )


def in_steps(run: Run, values: Array, step: float) -> Run:
    """The run as readers have it whose times were rounded."""
    quantiles = OrderedQuantiles([values.size], AT, [step])
    known, counts = np.unique(values, return_counts=True)
    quantiles.add(known, np.zeros(known.size, dtype=np.int64), counts)
    at = dict(zip(AT, quantiles.table()[0].tolist(), strict=True))
    summaries = {"p50": at[0.5], "mean": float(values.mean())}
    return replace(run, quantiles=at, summaries=summaries, step_ns=step)


def primary(of: Experiment) -> Comparison:
    return judge(of).comparisons[0]


def test_a_tail_that_moved_alone_is_a_changed_shape() -> None:
    found = primary(experiment(requests(tail=1.3)))
    assert found.verdict == "shape-changed"
    assert "but the distribution moved: p95 by +" in found.reason
    assert found.shape is not None
    assert found.shape.p_adjusted <= 0.05
    by_q = {quantile.q: quantile for quantile in found.shape.shift}
    assert max(by_q) == 0.99
    assert by_q[0.95].low > 0.2
    assert by_q[0.5].low < 0 < by_q[0.5].high


@pytest.mark.parametrize(("blocks", "mean"), [(2, "slower"), (3, "inconclusive")])
def test_disturbed_runs_decide_no_tail(blocks: int, mean: str) -> None:
    of = experiment(requests(tail=3.0))
    runs = tuple(replace(run, disturbed=run.block <= blocks) for run in of.runs)
    median, other = judge(replace(of, runs=runs)).comparisons
    assert median.shape is not None
    assert max(quantile.q for quantile in median.shape.shift) == 0.9
    assert (other.metric, other.verdict) == ("mean", mean)
    if mean == "inconclusive":
        assert "other programs used the CPU" in other.reason
        assert "in more than half of the load of 6 of 16 runs" in other.reason
    else:
        assert other.runs_baseline == 6


def test_a_page_of_many_requests_meets_the_tail() -> None:
    found = primary(experiment(requests(tail=1.3))).shape
    assert found is not None
    ten, _, hundred = found.pages
    assert (ten.requests, hundred.requests) == (10, 100)
    # The slowest 1 %: 1 - 0.99^10; of the hook every request of its slowest 8 % is as slow.
    assert ten.baseline == pytest.approx(1 - 0.99**10, abs=0.05)
    assert ten.condition == pytest.approx(1 - 0.92**10, abs=0.1)
    assert ten.condition < hundred.condition <= 1


def test_equal_shapes_are_unchanged() -> None:
    assert primary(experiment(requests())).verdict == "unchanged"


def test_a_shape_that_moved_by_less_than_the_budget_is_no_change() -> None:
    found = primary(experiment(requests(level=1.02)))
    assert found.shape is not None
    assert found.shape.p_adjusted <= 0.05
    assert found.verdict == "unchanged"


def test_a_change_everywhere_is_no_change_of_shape() -> None:
    found = primary(experiment(requests(tail=1.3, level=1.1)))
    assert found.verdict == "slower"


def test_a_cut_that_tells_something_else_is_told() -> None:
    cut = experiment(requests(seed=2))
    found = primary(experiment(requests(level=1.1), cuts={"half of the run": cut}))
    assert found.verdict == "inconclusive"
    assert "with half of the run left out" in found.reason
    assert [judged_cut.verdict for judged_cut in found.cuts] == ["unchanged"]


def test_another_effect_of_the_same_sign_opposes_nothing() -> None:
    """Both cuts say slower, and each effect lies outside of the other's interval."""
    cut = experiment(requests(level=1.3))
    found = primary(experiment(requests(level=1.1), cuts={"half of the run": cut}))
    assert [judged_cut.verdict for judged_cut in found.cuts] == ["slower"]
    assert found.high is not None
    assert found.high < 0.3
    assert found.verdict == "slower"


def test_cuts_that_are_only_less_sure_change_nothing() -> None:
    few = {key: values for key, values in requests(level=1.1).items() if key[1] <= 5}
    cuts = {
        "half of the run": experiment(few),
        "twice the warm-up": experiment(requests(level=1.1)),
    }
    found = primary(experiment(requests(level=1.1), cuts=cuts))
    assert [cut.verdict for cut in found.cuts] == ["inconclusive", "slower"]
    assert found.verdict == "slower"


def controlled(factor: float, spread: float = 0.001) -> Experiment:
    by_run = requests(level=1.1)
    again = {("plain~again", b): by_run["plain", b] * factor for b in range(1, BLOCKS + 1)}
    noise = np.random.default_rng(3).normal(1, spread, BLOCKS)
    again = {key: values * noise[key[1] - 1] for key, values in again.items()}
    return experiment(by_run | again, control="plain~again")


def test_a_baseline_that_differs_from_itself_forbids_a_verdict() -> None:
    judged = judge(controlled(1.05))
    assert judged.comparisons[0].verdict == "invalid"
    assert "the baseline differs from its own control" in judged.comparisons[0].reason
    assert [control.alarm for control in judged.controls] == [True]
    assert {comparison.condition for comparison in judged.comparisons} == {"hook"}


def test_a_quiet_control_is_not_seen() -> None:
    judged = judge(controlled(1.0))
    assert judged.comparisons[0].verdict == "slower"
    assert [(control.alarm, control.runs) for control in judged.controls] == [(False, BLOCKS)]
    assert {comparison.condition for comparison in judged.comparisons} == {"hook"}


def test_a_control_of_two_blocks_raises_no_alarm() -> None:
    of = controlled(1.05, spread=1e-6)
    few = replace(of, runs=tuple(run for run in of.runs if run.block <= 2))
    judged = judge(few)
    assert judged.comparisons[0].verdict == "inconclusive"
    assert [(control.alarm, control.runs) for control in judged.controls] == [(False, 2)]


@pytest.mark.parametrize("key", ["limits", "widths"])
def test_what_cannot_be_detected_is_no_change(key: str) -> None:
    of = experiment(requests(level=1.05))
    assert primary(of).verdict == "slower"
    least_ns = 0.08 * of.runs[0].summaries["p50"]
    limit = {("host", "request", "p50"): least_ns}
    found = primary(replace(of, **{key: limit}))  # type: ignore[arg-type]
    assert found.threshold == pytest.approx(0.08, rel=0.05)
    # What calibration did not detect is inside a limit; a bin as wide as that hides what it was.
    assert found.verdict == ("unchanged" if key == "limits" else "inconclusive")


@pytest.mark.parametrize("metric", ["p50", "mean"])
@pytest.mark.parametrize(
    ("levels", "verdict"), [((2.48, 2.52), "inconclusive"), ((3, 4), "slower")]
)
def test_times_in_coarse_steps_are_never_unchanged(
    metric: str, levels: tuple[float, float], verdict: str
) -> None:
    """Whole milliseconds, in which medians of 2.48 and 2.52 are 2 and 3."""
    generator = np.random.default_rng(3)
    by_run = {
        (condition, block): 1e6 * np.round(generator.lognormal(np.log(level), 0.25, 20_000))
        for condition, level in zip(("plain", "hook"), levels, strict=True)
        for block in range(1, BLOCKS + 1)
    }
    of = experiment(by_run, primary=metric)
    runs = [in_steps(run, by_run[run.condition, run.block], 1e6) for run in of.runs]
    found = primary(replace(of, runs=tuple(runs)))
    assert found.verdict == verdict


def test_a_quantile_is_held_against_its_own_limit() -> None:
    found = primary(experiment(requests(tail=1.3)))
    assert found.verdict == "shape-changed"
    limits_ns = {"p50": 100.0, "p95": 50_000.0, "p99": 50_000.0}
    limits = {("host", "request", name): limit for name, limit in limits_ns.items()}
    found = primary(experiment(requests(tail=1.3), limits=limits))
    assert found.verdict == "unchanged"
    assert found.shape is not None
    thresholds = {quantile.q: quantile.threshold for quantile in found.shape.shift}
    assert thresholds[0.5] == found.threshold == 0.03
    assert thresholds[0.99] == pytest.approx(50_000 / 111_000, rel=0.1)


def changed(of: Experiment, condition: str, change: dict[str, object]) -> Experiment:
    runs = tuple(
        replace(run, **change) if run.condition == condition else run  # type: ignore[arg-type]
        for run in of.runs
    )
    return replace(of, runs=runs)


def test_requests_that_took_no_time_have_no_shape() -> None:
    by_run = requests(level=1.1)
    for values in by_run.values():
        values[:200] = 0.0
    found = primary(experiment(by_run))
    assert (found.verdict, found.shape) == ("slower", None)


def test_runs_without_any_spread_are_not_believed() -> None:
    of = experiment(requests(level=1.1))
    still = changed(of, "plain", {"quantiles": dict.fromkeys(AT, 100_000.0)})
    found = primary(still)
    assert found.verdict == "inconclusive"
    assert "all requests of a run took exactly the same time" in found.reason


def test_one_request_that_is_most_of_a_mean_leaves_it_undecided() -> None:
    by_run = requests()
    by_run["hook", 3][-1] = 1e9
    judged = {comparison.metric: comparison for comparison in judge(experiment(by_run)).comparisons}
    assert judged["p50"].verdict == "unchanged"
    assert judged["mean"].verdict == "inconclusive"


def test_a_shape_whose_location_moves_with_the_cut_depends_on_the_warm_up() -> None:
    cut = experiment(requests(level=1.1))
    found = primary(experiment(requests(tail=1.5), cuts={"half of the run": cut}))
    assert [judged_cut.verdict for judged_cut in found.cuts] == ["slower"]
    assert found.verdict == "inconclusive"


def test_what_forbids_a_verdict_forbids_the_exploratory_ones() -> None:
    judged = judge(controlled(1.05))
    assert {comparison.verdict for comparison in judged.comparisons} == {"invalid"}
    assert len(judged.comparisons) > 1
    cut = experiment(requests(seed=2))
    judged = judge(experiment(requests(level=1.1), cuts={"half of the run": cut}))
    assert {comparison.metric: comparison.verdict for comparison in judged.comparisons}[
        "mean"
    ] == "inconclusive"


def test_a_control_that_is_not_there_is_named() -> None:
    of = controlled(1.05)
    gone = changed(of, "plain~again", {"valid": False, "reason": "no samples", "answered": 0})
    assert any(
        "the control has valid runs in 0 of 8 blocks" in line for line in judge(gone).warnings
    )
    assert not any("baseline counts" in line for line in judge(of).warnings)


def test_runs_that_do_not_count_are_named() -> None:
    of = experiment(requests())
    runs = tuple(
        replace(run, valid=False, reason="lost") if run.run == 6 else run
        for run in of.runs
        if (run.condition, run.block) != ("hook", 1)
    )
    judged = judge(replace(of, runs=runs))
    # Of the run that was lost it is known why; of the other nothing is.
    assert judged.comparisons[0].verdict == "inconclusive"
    assert "block 1 of 'hook' has no data and no recorded failure" in judged.comparisons[0].reason
    whole = judge(replace(of, runs=tuple(run for run in runs if run.block != 1)))
    assert whole.comparisons[0].verdict == "unchanged"
    assert "host: run 6 (hook, block 3): lost: the run does not count" in judged.warnings
    assert "host: no run of 'hook' in block 1: not compared there" in judged.warnings


def test_an_alarm_of_either_of_two_experiments_forbids_all_verdicts() -> None:
    alarm = Control("host", BLOCKS, "p95", 0.1, 0.001, alarm=True)
    of = {"": experiment(requests(level=1.1))}
    assert {comparison.verdict for comparison in judge_together(of, [alarm]).comparisons} == {
        "invalid"
    }
    quiet = replace(alarm, alarm=False)
    assert judge_together(of, [quiet]).comparisons[0].verdict == "slower"


@pytest.mark.parametrize("level", [1.0, 1.06])
def test_a_value_without_requests_beyond_its_step_may_be_anywhere_in_it(level: float) -> None:
    """Nearly all requests of a run are in two ticks of a clock: where in them is not known."""
    of = experiment(requests(level=level))
    step = 60_000.0
    ticked = {
        (run.condition, run.block): np.floor(values / step) * step
        for run, values in zip(of.runs, requests(level=level).values(), strict=True)
    }
    runs = tuple(
        in_steps(run, ticked[run.condition, run.block], step) if run.condition == "hook" else run
        for run in of.runs
    )
    found = primary(replace(of, runs=runs))
    assert found.verdict == "inconclusive"
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.4
