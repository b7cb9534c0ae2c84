# SPDX-License-Identifier: Apache-2.0
"""The table of verdicts: both values of every metric, in the 80 columns of a terminal."""

import re
from dataclasses import replace

import pytest

from tare.cli.shared.table import WARNINGS, written
from tare.samples.notes import TraceWarning
from tare.verdict import Comparison, Judgement
from tare.verdict.judgement import Role

LARGE = Comparison(
    environment="host",
    baseline="plain",
    condition="a condition with a long name of its own",
    span="request",
    metric="cpu_service",
    role="primary",
    budget=0.03,
    runs_baseline=8,
    runs_condition=8,
    baseline_value=34_700.0,
    condition_value=35_100.0,
    relative=0.123,
    low=-0.101,
    high=0.134,
    verdict="shape-changed",
    reason="The median moved.",
)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_row_has_both_values_and_fits_80_columns() -> None:
    errors = replace(
        LARGE, metric="error_rate", baseline_value=0.001, condition_value=0.003, relative=0.002
    )
    lines = written(Judgement((LARGE, errors))).splitlines()
    assert lines[0] == "a condition with a long name of its own against plain, 8+8 runs"
    assert "34.7 µs -> 35.1 µs" in lines[1]
    assert "0.10 % ->  0.30 %" in lines[2]
    assert max(map(len, lines)) <= 80


def test_metrics_with_fewer_runs_are_named_above_the_table() -> None:
    tails = [
        replace(LARGE, role="exploratory", metric=metric, runs_baseline=5, runs_condition=5)
        for metric in ("p95", "p99")
    ]
    cpu = replace(LARGE, role="exploratory", metric="mean", runs_baseline=4)
    primary = replace(LARGE, condition="hook")
    others = [replace(tail, condition="hook") for tail in (*tails, cpu)]
    lines = written(Judgement((primary, *others))).splitlines()
    assert lines[0] == "hook against plain, 8+8 runs (p95, p99: 5+5; mean: 4+8)"


def test_the_cause_that_other_metrics_share_is_said_once() -> None:
    few = "runs have too few independent requests for {}: record more requests."
    tails = [
        replace(
            LARGE,
            role="exploratory",
            metric=metric,
            verdict="inconclusive",
            reason=few.format(metric),
        )
        for metric in ("p95", "p99")
    ]
    wide = replace(
        LARGE, role="exploratory", metric="mean", verdict="inconclusive", reason="The mean"
    )
    text = " ".join(written(Judgement((LARGE, *tails, wide))).split())
    assert text.count("too few independent requests") == 1
    assert f"p95, p99: {few.format('p99')}" in text
    assert "The mean" not in text


def test_the_same_reason_of_several_spans_is_printed_once() -> None:
    few = "1 run per condition cannot prove any change: 5 are needed, 4 more"
    roles: list[tuple[str, Role]] = [
        ("p50", "primary"), ("p95", "exploratory"), ("p99", "exploratory")
    ]  # fmt: skip
    spans = [
        replace(LARGE, span=span, metric=metric, role=role, verdict="inconclusive",
                reason=f"{few}; so far, {metric} is {number} % higher: 1 ms -> 2 ms.")
        for number, span in enumerate(("order", "pay"))
        for metric, role in roles
    ]  # fmt: skip
    text = " ".join(written(Judgement(tuple(spans))).split())
    assert text.count(few) == 1
    assert f"all 2 comparisons: {few}." in text
    other = replace(spans[0], span="other", verdict="slower", reason="The median is higher.")
    text = " ".join(written(Judgement((*spans, other))).split())
    name = LARGE.condition
    assert f"{name}, order; {name}, pay: {few}." in text
    assert f"{name}, other: The median is higher." in text
    alone = " ".join(written(Judgement((spans[0],))).split())
    assert f"{name}, order: {few}; so far, p50 is 0 % higher: 1 ms -> 2 ms." in alone


def test_more_than_five_warnings_are_counted() -> None:
    text = written(Judgement((LARGE,), tuple(f"cause {number}" for number in range(9))))
    assert text.count("warning:") == WARNINGS
    assert "and 4 more: see --json" in text


def test_warnings_about_critical_paths_come_before_the_table() -> None:
    text = written(Judgement((LARGE,), ("another cause", TraceWarning("clocks differ"))))
    assert text.startswith("warning: clocks differ\n\na condition with a long name")
    assert text.endswith("\nwarning: another cause\n")
    assert text.count("warning:") == 2


def test_without_a_comparison_there_is_no_table() -> None:
    assert "warning: nothing" in written(Judgement((), ("nothing to compare",)))


def test_a_terminal_gets_colours_unless_it_refuses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = written(Judgement((LARGE,), ("a cause",)))
    assert "\x1b[1;35mshape-changed\x1b[0m" in coloured
    assert "\x1b[33mwarning:\x1b[0m a cause" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = written(Judgement((LARGE,), ("a cause",)))
    assert "\x1b" not in plain
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", coloured)
