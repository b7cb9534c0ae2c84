# SPDX-License-Identifier: Apache-2.0
"""Throughput and error rate as metrics: more requests per second are better, more errors worse."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tare.verdict import Comparison, judge
from tare.verdict.judge_test import blocks, noisy


def judged(rates: Mapping[str, Mapping[str, float]]) -> dict[str, Comparison]:
    """Eight blocks in which each condition has these rates, give or take half a per cent."""
    of = blocks(noisy(1.0))
    runs = []
    for run in of.runs:
        scale = 1 + 0.005 * (-1) ** (run.block // 2 + (run.condition == "hook"))
        own = {name: value * scale for name, value in rates[run.condition].items()}
        runs.append(replace(run, summaries={**run.summaries, **own}))
    return {
        comparison.metric: comparison
        for comparison in judge(replace(of, runs=tuple(runs))).comparisons
    }


def test_fewer_requests_per_second_are_slower() -> None:
    found = judged({"plain": {"throughput": 1_000.0}, "hook": {"throughput": 800.0}})["throughput"]
    assert (found.verdict, found.role, found.unit) == ("slower", "exploratory", "requests/s")
    assert found.relative == pytest.approx(-0.2, abs=0.01)
    assert "The throughput is 20.0 % lower: 1,000/s -> 800/s" in found.reason
    more = judged({"plain": {"throughput": 1_000.0}, "hook": {"throughput": 1_300.0}})
    assert more["throughput"].verdict == "faster"


def test_more_errors_are_slower_and_counted_in_points() -> None:
    found = judged({"plain": {"error_rate": 0.001}, "hook": {"error_rate": 0.005}})["error_rate"]
    assert (found.verdict, found.unit) == ("slower", "share")
    assert found.relative == pytest.approx(0.004, abs=1e-4)
    assert found.relative == pytest.approx(found.difference)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.004 < found.high
    assert "The error rate is 0.40 points higher: 0.10 % -> 0.50 %" in found.reason
    form = found.to_json()
    assert form["effect"]["relative"] is None
    assert form["effect"]["absolute_ns"] is None
    assert form["effect"]["difference"] == found.difference


def test_no_errors_at_all_are_unchanged() -> None:
    found = judged({"plain": {"error_rate": 0.0}, "hook": {"error_rate": 0.0}})["error_rate"]
    assert found.verdict == "unchanged"
    assert "the same to 0.01 points" in found.reason


def test_a_small_difference_of_error_rates_is_within_their_budget() -> None:
    found = judged({"plain": {"error_rate": 0.002}, "hook": {"error_rate": 0.0024}})["error_rate"]
    assert found.verdict == "unchanged"
    assert "within the budget of 0.10 points" in found.reason
