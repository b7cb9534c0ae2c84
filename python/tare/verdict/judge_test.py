# SPDX-License-Identifier: Apache-2.0
"""Every word of a verdict from experiments made for it, and the level of the whole."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tare.errors import InputError
from tare.samples.model import Experiment, Run
from tare.verdict import Comparison, Judgement, judge

NOISE = (0.004, -0.003, 0.002, -0.004, 0.003, -0.002, 0.001, -0.001)
METRICS = {"p50": 100_000.0, "p95": 200_000.0, "p99": 400_000.0, "mean": 120_000.0}


def run(
    condition: str,
    block: int,
    factor: float | dict[str, float] = 1.0,
    *,
    environment: str = "host",
    reason: str | None = None,
) -> Run:
    """A run with the usual values times `factor`, of all metrics or each; invalid by a reason."""
    factors = factor if isinstance(factor, dict) else dict.fromkeys(METRICS, factor)
    started = block * 10_000 + 10 * ((condition != "plain") != (block % 2))
    return Run(
        environment=environment,
        condition=condition,
        block=block,
        run=2 * block + (condition != "plain"),
        span="request",
        requests=5_000,
        errors=0,
        answered=5_000,
        started_ns=started,
        ended_ns=started + 5_000,
        summaries={}
        if reason
        else {metric: value * factors.get(metric, 1.0) for metric, value in METRICS.items()},
        valid=reason is None,
        reason=reason,
    )


def blocks(effect: Callable[[int], float | dict[str, float]], count: int = 8) -> Experiment:
    """Paired blocks whose hook is `effect(block)` times plain; blocks themselves drift by 10 %."""
    runs = []
    for block in range(1, count + 1):
        drift = 1 + 0.1 * (block % 3)
        factor = effect(block)
        by_metric = factor if isinstance(factor, dict) else dict.fromkeys(METRICS, factor)
        runs.append(run("plain", block, drift))
        runs.append(run("hook", block, {m: by_metric.get(m, 1.0) * drift for m in METRICS}))
    return Experiment(tuple(runs), "plain", paired=True, budget=0.03)


def noisy(effect: float, scale: float = 1.0) -> Callable[[int], float]:
    return lambda block: effect * (1 + scale * NOISE[(block - 1) % 8])


def primary(judgement: Judgement) -> Comparison:
    assert judgement.comparisons[0].role == "primary"
    return judgement.comparisons[0]


def test_slower_and_faster() -> None:
    for effect, word, higher in ((1.10, "slower", "higher"), (0.90, "faster", "lower")):
        found = primary(judge(blocks(noisy(effect))))
        assert found.verdict == word
        assert found.relative == pytest.approx(effect - 1, abs=0.002)
        assert found.difference == pytest.approx((effect - 1) * 109_500, rel=0.03)
        assert found.low is not None
        assert found.high is not None
        assert found.low < effect - 1 < found.high
        assert found.p == found.p_adjusted == 2 / 2**8
        assert found.runs_needed is None
        assert f"{higher}: 111 µs -> " in found.reason
        sizes = found.effect_sizes
        assert sizes is not None
        assert sizes.hodges_lehmann == pytest.approx(effect - 1, abs=0.002)
        assert sizes.cliffs_delta == 2 * sizes.vargha_delaney - 1
        assert (sizes.vargha_delaney > 0.5) == (effect > 1)
        assert "over 8 blocks; the budget is 3.0 %" in found.reason


def test_unchanged_means_inside_the_budget() -> None:
    found = primary(judge(blocks(noisy(1.0))))
    assert found.verdict == "unchanged"
    assert "within the budget of 3.0 %" in found.reason
    # A difference that is sure but too small to matter is no change.
    found = primary(judge(blocks(noisy(1.01))))
    assert found.p == 2 / 2**8
    assert found.verdict == "unchanged"


def test_a_sure_difference_that_may_exceed_the_budget_is_a_change() -> None:
    found = primary(judge(blocks(noisy(1.028, scale=2))))
    assert found.high is not None
    assert found.high > 0.03
    assert found.verdict == "slower"


def test_noise_is_inconclusive_and_says_what_it_takes() -> None:
    found = primary(judge(blocks(noisy(1.02, scale=25))))
    assert found.verdict == "inconclusive"
    assert found.mde is not None
    assert found.mde > 0.03
    assert found.runs_needed is not None
    assert found.runs_needed > 8
    more = found.runs_needed - 8
    assert f"about {found.runs_needed} blocks ({more} more) would" in found.reason
    assert "show that it is within the budget of 3.0 %" in found.reason
    assert found.runs_show == "no difference"


def test_metrics_that_do_not_decide_have_words_of_their_own() -> None:
    moved = judge(blocks(lambda b: {"p50": 1 + NOISE[b - 1], "p99": 1.2 * (1 + NOISE[b - 1])}))
    by_metric = {comparison.metric: comparison for comparison in moved.comparisons}
    assert by_metric["p99"].role == "exploratory"
    assert by_metric["p99"].verdict == "slower"
    assert by_metric["p95"].verdict == "unchanged"
    # Benjamini-Hochberg over three exploratory metrics, only one of them small.
    assert by_metric["p99"].p == 2 / 2**8
    assert by_metric["p99"].p_adjusted == pytest.approx(3 * 2 / 2**8)


@pytest.mark.parametrize(("count", "needed"), [(1, 6), (2, 6), (5, 6)])
def test_below_six_blocks_nothing_is_concluded(count: int, needed: int) -> None:
    found = primary(judge(blocks(noisy(1.5), count)))
    assert found.verdict == "inconclusive"
    assert found.runs_baseline == found.runs_condition == count
    assert found.runs_needed is not None
    assert found.runs_needed >= needed
    assert f"{found.runs_needed} are needed, {found.runs_needed - count} more" in found.reason
    if count == 1:
        assert (found.low, found.p, found.mde, found.runs_needed) == (None, None, None, 6)


def test_equal_runs_are_not_called_lower() -> None:
    found = primary(judge(blocks(lambda _: 1.0, 3)))
    assert "so far, the median is the same to 0.01 %" in found.reason


def test_below_five_unpaired_runs_nothing_is_concluded() -> None:
    for count, word in ((1, "inconclusive"), (4, "inconclusive"), (5, "slower")):
        # Unpaired, the drift between blocks is noise, so the effect has to be large.
        experiment = replace(blocks(noisy(2.0), count), paired=False)
        found = primary(judge(experiment))
        assert found.verdict == word
        assert found.runs_needed == {1: 5, 5: None}.get(count, found.runs_needed)


def test_six_blocks_decide_however_many_environments_there_are() -> None:
    """Of 2^5 ways to flip the signs of all, only the way that was seen is as extreme."""
    here = blocks(noisy(1.2), 6)
    there = tuple(replace(run, environment="container") for run in here.runs)
    judgement = judge(replace(here, runs=(*here.runs, *there)))
    first, second = judgement.comparisons[:2]
    assert {first.environment, second.environment} == {"host", "container"}
    for comparison in (first, second):
        assert comparison.p_adjusted == 2 / 64
        assert comparison.verdict == "slower"


def test_among_other_comparisons_only_a_larger_change_is_found() -> None:
    here = blocks(noisy(1.02, scale=12), 9)
    generator = np.random.default_rng(1)
    others = tuple(
        replace(run, environment=f"e{number}", summaries={"p50": generator.lognormal(0, 0.1)})
        for number in range(6)
        for run in here.runs
    )
    alone = primary(judge(here))
    among = primary(judge(replace(here, runs=(*here.runs, *others))))
    assert alone.mde is not None
    assert among.mde is not None
    assert among.mde > 1.2 * alone.mde


def test_close_runs_are_not_surer_than_their_number_allows() -> None:
    """Seven conditions, five unpaired runs: 7 x 2/252 is above alpha, however close the runs."""
    generator = np.random.default_rng(5)
    runs = [
        replace(run(name, block, float(level * generator.normal(1, 1e-4))), run=block)
        for name, level in (("plain", 1.0), *((f"c{number}", 1.0015) for number in range(7)))
        for block in range(1, 6)
    ]
    judged = judge(Experiment(tuple(runs), "plain", paired=False, budget=0.001))
    found = [comparison for comparison in judged.comparisons if comparison.role == "primary"]
    assert {comparison.p_adjusted for comparison in found} == {7 * 2 / 252}
    assert {comparison.verdict for comparison in found} == {"inconclusive"}


def test_invalid_when_failures_leave_too_few() -> None:
    whole = blocks(noisy(1.1))
    crashed = tuple(
        run("hook", original.block, reason="the service crashed")
        if original.condition == "hook" and original.block <= 3
        else original
        for original in whole.runs
    )
    found = primary(judge(replace(whole, runs=crashed)))
    assert found.verdict == "invalid"
    assert found.runs_condition == 5
    assert (
        "3 runs failed ('hook': 3 runs, the first is run 3 (hook, block 1): the service crashed),"
        " which leaves 5 blocks of 8" in found.reason
    )
    fewer = tuple(
        run("hook", 1, reason="port in use")
        if (original.condition, original.block) == ("hook", 1)
        else original
        for original in whole.runs
    )
    found = primary(judge(replace(whole, runs=fewer)))
    assert (found.verdict, found.runs_condition) == ("slower", 7)


def test_all_runs_of_a_condition_invalid() -> None:
    whole = blocks(noisy(1.1), 2)
    none = tuple(
        original
        if original.condition == "plain"
        else run("hook", original.block, reason="no answer")
        for original in whole.runs
    )
    found = primary(judge(replace(whole, runs=none)))
    assert (found.verdict, found.relative, found.runs_condition) == ("invalid", None, 0)


def test_metrics_of_invalid_runs_alone_do_not_make_the_primary_unknown() -> None:
    broken = [
        replace(run(name, block, reason="no samples"), summaries={"cpu_service": 1.0})
        for block in range(1, 9)
        for name in ("plain", "hook")
    ]
    found = judge(Experiment(tuple(broken), "plain", paired=True, budget=0.03))
    assert primary(found).verdict == "invalid"


def test_a_clock_too_coarse_for_ratios() -> None:
    found = primary(judge(blocks(lambda _: {"p50": 0.0})))
    assert found.verdict == "inconclusive"
    assert "too coarse" in found.reason


def test_cpu_time_explains_and_does_not_decide() -> None:
    whole = blocks(noisy(1.0))
    with_cpu = tuple(
        replace(
            run,
            summaries={
                **run.summaries,
                "cpu_service": (50_000 if run.condition == "plain" else 60_000)
                * (1 + NOISE[run.block - 1] * (run.condition == "hook")),
            },
        )
        for run in whole.runs
    )
    judgement = judge(replace(whole, runs=with_cpu))
    assert primary(judgement).verdict == "unchanged"
    assert "the CPU time per request of service and layers +20" in primary(judgement).reason
    cpu = next(
        comparison for comparison in judgement.comparisons if comparison.metric == "cpu_service"
    )
    assert (cpu.role, cpu.verdict) == ("exploratory", "slower")
    missing = {**with_cpu[0].summaries, "cpu_service": float("nan")}
    partly = (replace(with_cpu[0], summaries=missing), *with_cpu[1:])
    judgement = judge(replace(whole, runs=partly))
    cpu = next(
        comparison for comparison in judgement.comparisons if comparison.metric == "cpu_service"
    )
    assert cpu.runs_baseline == 7


def test_the_json_form() -> None:
    form = json.loads(json.dumps(judge(blocks(noisy(1.1), 1)).to_json(published=True)))
    keys = "compare comparisons published controls traces round_trips smoke warnings notes"
    assert list(form) == keys.split()
    assert form["published"] is None
    first = form["comparisons"][0]
    named = "baseline condition span metric verdict effect interval p p_adjusted runs mde"
    more = "runs_needed reason environment role budget threshold shape effect_sizes warm_up_cuts"
    new = {"p_equivalent", "runs_show", "unit", "values"}
    assert set(first) == {*new, *named.split(), *more.split()}
    assert first["unit"] == "ns"
    values = first["values"]
    assert first["effect"] == {
        "relative": pytest.approx(values["condition"] / values["baseline"] - 1),
        "absolute_ns": pytest.approx(values["condition"] - values["baseline"]),
        "difference": first["effect"]["absolute_ns"],
    }
    assert first["interval"] == {"low": None, "high": None, "level": 0.95}
    assert first["runs"] == {"baseline": 1, "condition": 1}
    assert "published" not in judge(blocks(noisy(1.1), 1)).to_json()


def test_a_tail_of_few_requests_decides_nothing() -> None:
    whole = replace(blocks(lambda _: {"p50": 1.1, "p99": 1.1}), primary="p99")
    runs = tuple(replace(run, answered=run.answered * 520 // run.answered) for run in whole.runs)
    found = primary(judge(replace(whole, runs=runs)))
    assert found.verdict == "inconclusive"
    assert "too few independent requests for p99" in found.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": "none"}, "no runs of the baseline 'none'"),
        ({"primary": "p42"}, "no metric 'p42'; expected one of mean, p50, p95, p99"),
        ({"budget": 0.0}, "the budget is 0"),
        ({"alpha": 0.0}, "alpha is 0"),
    ],
)
def test_what_cannot_be_judged_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judge(replace(blocks(noisy(1.0)), **change))  # type: ignore[arg-type]
    alone = replace(blocks(noisy(1.0)), runs=(run("plain", 1),))
    with pytest.raises(InputError, match="name a condition"):
        judge(alone)


def simulated(generator: np.random.Generator, effect: float, count: int = 8) -> Experiment:
    """Blocks that drift by 5 %, runs that scatter by 1.5 %, a tail by 1 % more."""
    runs = []
    for block in range(1, count + 1):
        drift = generator.normal(0, 0.05)
        for condition in ("plain", "hook"):
            own = generator.normal(0, 0.015)
            shift = np.log(effect) if condition == "hook" else 0.0
            p50 = 1e5 * np.exp(drift + own + shift)
            p99 = 4 * p50 * np.exp(generator.normal(0, 0.01))
            runs.append(replace(run(condition, block), summaries={"p50": p50, "p99": p99}))
    return Experiment(tuple(runs), "plain", paired=True, budget=0.03)


@pytest.mark.exhaustive
def test_false_alarms_and_finds() -> None:
    """A/A: at most 5 % alarms but for chance in 400 tries; +5 %: found in nine of ten."""
    generator = np.random.default_rng(8)
    tries = 400
    words = [primary(judge(simulated(generator, 1.0))).verdict for _ in range(tries)]
    alarms = sum(word not in ("unchanged", "inconclusive") for word in words)
    assert alarms / tries <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / tries)
    assert words.count("unchanged") / tries > 0.5
    found = [primary(judge(simulated(generator, 1.05))).verdict for _ in range(100)]
    assert found.count("slower") >= 90
    assert found.count("faster") == 0
