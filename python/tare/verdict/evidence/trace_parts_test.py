# SPDX-License-Identifier: Apache-2.0
"""Parts of requests and mixes of structures, of experiments whose truth is known."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from tare.samples.model import Call, Experiment, Part, Run, Traced
from tare.stats.fewest_runs import LEAST_PAIRED
from tare.verdict.evidence.trace_parts import OTHER, compared_traces
from tare.verdict.traces import TraceComparison

ROOT = "order"
USUAL, WITHOUT, RETRIED = 11, 12, 13
CALLS = {
    1: Call(0, ROOT), 2: Call(1, "pay"), 3: Call(1, "cache"), 4: Call(1, "retry"),
    5: Call(4, "connect"),
}  # fmt: skip
STRUCTURES = {
    USUAL: frozenset({1, 2, 3}),
    WITHOUT: frozenset({1, 2}),
    RETRIED: frozenset({1, 2, 3, 4, 5}),
}


def run(number: int, condition: str, block: int) -> Run:
    return Run(
        environment="", condition=condition, block=block, run=number, span=ROOT, requests=1_000,
        errors=0, answered=1_000, started_ns=None, summaries={"p50": 1e6},
    )  # fmt: skip


def traced(pay: float = 400, own: float = 600, **shares: float) -> Traced:
    """A run of 1,000 requests of `own` and `pay` ns."""
    parts = {ROOT: Part(own, own, 1.0), "pay": Part(pay, pay, 1.0)}
    mix = {"usual": USUAL, "without": WITHOUT, "retried": RETRIED, "other": OTHER}
    structures = {mix[name]: round(1_000 * share) for name, share in shares.items()}
    rest = 1_000 - sum(structures.values())
    return Traced(1_000, own + pay, parts, {USUAL: rest} | structures, broken=0.0)


def experiment(old: list[Traced], new: list[Traced], *, paired: bool = True) -> Experiment:
    numbered = [
        (2 * block + side, condition, block + 1, trace)
        for side, (condition, runs) in enumerate((("old", old), ("new", new)))
        for block, trace in enumerate(runs)
    ]
    return Experiment(
        runs=tuple(run(number, condition, block) for number, condition, block, _ in numbered),
        baseline="old",
        paired=paired,
        budget=0.03,
        traces={(number, ROOT): trace for number, _, _, trace in numbered},
        structures=STRUCTURES,
        calls=CALLS,
    )


def compared(of: Experiment) -> TraceComparison:
    (comparison,) = compared_traces(of, ())
    return comparison


@pytest.mark.parametrize("paired", [True, False])
def test_the_parts_of_a_difference_sum_to_it(paired: bool) -> None:
    generator = np.random.default_rng(1)
    sides = [
        [traced(pay * generator.normal(1, 0.01), 600 * generator.normal(1, 0.01)) for _ in range(8)]
        for pay in (400, 440)
    ]
    comparison = compared(experiment(*sides, paired=paired))
    assert comparison.root == ROOT
    assert comparison.requests == (8_000, 8_000)
    assert [part.span for part in comparison.parts] == ["pay", ROOT]
    pay, own = (part.critical_ns for part in comparison.parts)
    assert pay.difference + own.difference == pytest.approx(comparison.mean_ns.difference)
    assert pay.low is not None
    assert pay.high is not None
    assert own.low is not None
    assert own.high is not None
    assert 30 < pay.low < pay.difference < pay.high < 50
    assert own.low < 0 < own.high
    assert pay.p_adjusted is not None
    assert own.p_adjusted is not None
    assert pay.p_adjusted <= 0.05 < own.p_adjusted


def test_a_span_of_one_side_alone() -> None:
    new = [replace(traced(), parts={**traced().parts, "retry": Part(50, 50, 0.5)})] * 2
    comparison = compared(experiment([traced()] * 2, new))
    retry = next(part for part in comparison.parts if part.span == "retry")
    assert (retry.critical_ns.baseline, retry.critical_ns.condition) == (0, 50)
    assert retry.calls.difference == 0.5


def test_one_run_has_values_and_no_interval() -> None:
    comparison = compared(experiment([traced()], [traced(pay=500, without=0.5)]))
    assert comparison.mean_ns.difference == 100
    assert (comparison.mean_ns.low, comparison.mean_ns.p_adjusted) == (None, None)
    assert comparison.verdict == "inconclusive"
    assert comparison.reason == (
        f"1 run per condition; a verdict needs {LEAST_PAIRED}: requests without 'cache':"
        " 0.00 % -> 50.0 %"
    )


def mixes(
    generator: np.random.Generator, shares: tuple[float, float], runs: int, scatter: float
) -> Experiment:
    """Runs whose share of requests without a call scatters from one run to the next."""

    def mix(share: float) -> Traced:
        level = np.clip(share + generator.normal(0, scatter), 0, 1)
        return traced(without=generator.binomial(1_000, level) / 1_000)

    return experiment(*([mix(share) for _ in range(runs)] for share in shares))


@pytest.mark.exhaustive
@pytest.mark.parametrize("scatter", [0.0, 0.02])
@pytest.mark.parametrize("runs", [6, 10])
def test_mixes_that_are_alike_rarely_change(runs: int, scatter: float) -> None:
    experiments = 300
    generator = np.random.default_rng([runs, int(100 * scatter)])
    words = [
        compared(mixes(generator, (0.3, 0.3), runs, scatter)).verdict for _ in range(experiments)
    ]
    assert words.count("changed") <= experiments * (0.05 + 2 * sqrt(0.05 * 0.95 / experiments))
    if runs == 10 and not scatter:
        assert words.count("unchanged") >= 0.9 * experiments


@pytest.mark.parametrize("shares", [(0.3, 0.4), (0.0, 0.1), (1.0, 0.9)])
def test_a_mix_that_changes_is_seen(shares: tuple[float, float]) -> None:
    generator = np.random.default_rng(7)
    found = [compared(mixes(generator, shares, 8, 0.01)) for _ in range(50)]
    assert sum(comparison.verdict == "changed" for comparison in found) >= 45


def test_structures_are_named_by_how_they_differ_from_the_usual_one() -> None:
    old = [traced(without=0.2, other=0.01)] * 6
    new = [traced(without=0.2, retried=0.3, other=0.02)] * 6
    comparison = compared(experiment(old, new))
    assert [(shape.calls, round(shape.share.condition, 9)) for shape in comparison.structures] == [
        ("with the usual calls", 0.48),
        ("without 'cache'", 0.2),
        ("with 'retry'", 0.3),
        ("with rare calls", 0.02),
    ]
    assert comparison.verdict == "changed"
    assert comparison.reason == "requests with 'retry': 0.00 % -> 30.0 % (+30.0 to +30.0 points)"


def test_an_alarm_of_the_control_forbids_a_verdict() -> None:
    (comparison,) = compared_traces(experiment([traced()] * 6, [traced(without=0.5)] * 6), {""})
    assert comparison.verdict == "invalid"


def test_runs_that_do_not_count_have_no_traces() -> None:
    of = experiment([traced()] * 6, [traced()] * 6)
    bad = replace(of.runs[0], valid=False, reason="crashed")
    comparison = compared(replace(of, runs=(bad, *of.runs[1:])))
    assert comparison.requests == (5_000, 5_000), "its partner does not count either"
