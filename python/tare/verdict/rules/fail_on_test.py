# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from tare.verdict import Comparison, Judgement
from tare.verdict.judgement import Quantile, Shape
from tare.verdict.rules.fail_on import hits


def comparison(verdict: Any, metric: str = "p50", **more: Any) -> Comparison:
    known: dict[str, Any] = {
        "environment": "",
        "baseline": "old",
        "condition": "new",
        "span": "request",
        "role": "primary" if metric == "p50" else "exploratory",
        "budget": 0.03,
        "runs_baseline": 8,
        "runs_condition": 8,
        "relative": 0.12,
        "reason": "because",
    }
    return Comparison(verdict=verdict, metric=metric, **(known | more))


def stopped(*comparisons: Comparison, by: tuple[str, ...]) -> list[tuple[str, str]]:
    return hits(Judgement(comparisons), by)


@pytest.mark.parametrize("word", ["slower", "inconclusive", "invalid"])
def test_a_word_stops_its_verdict_and_no_other(word: str) -> None:
    verdicts = ("slower", "faster", "unchanged", "shape-changed", "inconclusive", "invalid")
    every = [comparison(verdict) for verdict in verdicts]
    said = f"'new' against 'old' is {word}, p50 +12.0 %"
    assert stopped(*every, by=(word,)) == [(word, said)]
    assert stopped(*every, by=()) == []


def test_metrics_that_do_not_decide_stop_nothing() -> None:
    assert stopped(comparison("unchanged"), comparison("slower", "p99"), by=("slower",)) == []


def shape_changed(*parts: Quantile) -> Comparison:
    shape = Shape(ks_p=0.2, ad_p=0.01, p_adjusted=0.01, shift=parts)
    return comparison("shape-changed", threshold=0.03, shape=shape)


def test_a_cost_moved_into_the_tail_is_slower() -> None:
    changed = shape_changed(
        Quantile(0.5, 0.01, 0.0, 0.02, 0.03), Quantile(0.99, 0.2, 0.1, 0.3, 0.03)
    )
    said = "'new' against 'old' is shape-changed, p99 +20.0 %"
    assert stopped(changed, by=("slower",)) == [("slower", said)]
    assert stopped(changed, by=("inconclusive", "invalid")) == []


@pytest.mark.parametrize(
    "part",
    [Quantile(0.99, -0.2, -0.3, -0.1, 0.03), Quantile(0.95, 0.04, 0.02, 0.06, 0.03)],
    ids=["faster", "perhaps within the threshold"],
)
def test_another_change_of_shape_stops_nothing(part: Quantile) -> None:
    assert stopped(shape_changed(part), by=("slower",)) == []
    assert stopped(comparison("shape-changed"), by=("slower",)) == []


def test_place_and_span_are_told() -> None:
    ((_, said),) = stopped(comparison("slower", environment="netns", span="pay"), by=("slower",))
    assert said == "'new' against 'old', netns, pay is slower, p50 +12.0 %"


@pytest.mark.parametrize("word", ["slower", "inconclusive", "invalid"])
def test_a_smoke_run_is_stopped_by_no_word(word: str) -> None:
    assert hits(Judgement((comparison(word),), smoke=True), (word,)) == []
