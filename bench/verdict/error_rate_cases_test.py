# SPDX-License-Identifier: Apache-2.0
"""The cases and the table from outcomes made for it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from bench.cases import Case, read_bars
from bench.verdict import error_rate_cases, simulate
from bench.verdict.scenarios import EFFECTS, SCENARIOS, Scenario
from bench.verdict.simulate import CHUNK, TARE, Outcome, Task, carried_out

REPETITIONS = 200
BLOCKED = Scenario("blocked")


def verdicts(alarms: float, found: float) -> np.ndarray:
    """(REPETITIONS, effects) with these shares."""
    shares = [alarms, *[found] * (len(EFFECTS) - 1)]
    columns = [np.arange(REPETITIONS) < share * REPETITIONS for share in shares]
    return np.array(columns, dtype=np.float64).T


def outcome(
    tare: tuple[float, float] = (0.05, 0.8),
    peer: tuple[float, float] = (0.05, 0.8),
    liar: tuple[float, float] = (0.5, 1.0),
    *,
    scenario: Scenario = BLOCKED,
    runs: int = 8,
    width: float = 0.02,
    word: str = "unchanged",
) -> Outcome:
    methods = {TARE: tare, "honest": peer, "liar": liar}
    return Outcome(
        scenario,
        runs,
        EFFECTS,
        {name: verdicts(*shares) for name, shares in methods.items()},
        ((word, "slower", "slower", "slower"),) * REPETITIONS,
        np.full(REPETITIONS, width),
    )


def cases(outcomes: Sequence[Outcome]) -> list[Case]:
    """Further experiments show what those before them did."""
    return error_rate_cases.cases(outcomes, lambda cell: cell)


def held(name: str, *outcomes: Outcome) -> bool:
    both = [*outcomes, *(outcome(runs=10) for _ in range(1))]
    case = next(case for case in cases(both) if case.name == name)
    return read_bars("verdict")[name].met(case)


@pytest.mark.parametrize(("alarms", "met"), [(0.0, True), (0.05, True), (0.12, False)])
def test_false_alarms_are_held_against_what_chance_allows(alarms: float, met: bool) -> None:
    assert held("false-alarms", outcome(tare=(alarms, 1.0))) is met
    # Neither few runs nor unblocked designs are asked of.
    lax = (0.5, 1.0)
    assert held("false-alarms", outcome(), outcome(tare=lax, runs=5))
    assert held("false-alarms", outcome(), outcome(tare=lax, scenario=Scenario("u", "unblocked")))


@pytest.mark.parametrize(("alarms", "met"), [(0.05, True), (0.07, False)])
def test_a_little_too_much_everywhere_is_no_chance(alarms: float, met: bool) -> None:
    cells = [
        outcome(tare=(alarms, 1.0), scenario=Scenario(name), runs=runs)
        for name in "abcdef"
        for runs in (6, 8, 10)
    ]
    assert held("false-alarms", *cells)
    assert held("false-alarms-pooled", *cells) is met


def test_what_is_a_little_too_much_everywhere_is_no_rival() -> None:
    names = "abcdef"
    cells = [
        outcome(peer=(0.07, 0.9), liar=(0.05, 0.8), scenario=Scenario(name), runs=runs)
        for name in names
        for runs in (8, 10)
    ]
    (case,) = [case for case in cases(cells) if case.name == "power-8"]
    assert f"liar {len(names)}" in case.note


@pytest.mark.parametrize(("power", "met"), [(0.76, True), (0.7, False)])
def test_the_worst_scenario_has_the_bar_of_all(power: float, met: bool) -> None:
    cells = [outcome(), outcome(scenario=Scenario("the hard one"), tare=(0.0, power))]
    assert held("power-8", *cells)
    assert held("power-8-worst", *cells) is met
    (worst,) = [case for case in cases([*cells, outcome(runs=10)]) if case.name == "power-8-worst"]
    assert "the hard one" in worst.note


@pytest.mark.parametrize(("power", "met"), [(0.76, True), (0.6, False)])
def test_the_worst_scenario_is_judged_by_further_experiments(power: float, met: bool) -> None:
    cells = [outcome(tare=(0.0, 0.7)), outcome(runs=10)]
    found = error_rate_cases.cases(
        cells, lambda cell: replace(cell, verdicts=outcome((0.0, power)).verdicts)
    )
    worst = next(case for case in found if case.name == "power-8-worst")
    assert read_bars("verdict")[worst.name].met(worst) is met


@pytest.mark.parametrize(("power", "met"), [(0.8, True), (0.76, True), (0.7, False)])
def test_power_is_held_against_the_best_that_keeps_its_level(power: float, met: bool) -> None:
    assert held("power-8", outcome(tare=(0.0, power))) is met


def test_what_raises_false_alarms_is_no_rival() -> None:
    (case,) = [case for case in cases([outcome(), outcome(runs=10)]) if case.name == "power-8"]
    assert case.peer_values == [80]
    assert "honest 1" in case.note


@pytest.mark.parametrize(("word", "met"), [("unchanged", True), ("slower", False)])
def test_unchanged_is_asked_where_the_interval_fits_into_the_budget(word: str, met: bool) -> None:
    blind = [outcome(word="inconclusive", width=width) for width in (0.031, np.nan)]
    outcomes = [outcome(word=word), outcome(runs=10, word=word), *blind]
    (case,) = [case for case in cases(outcomes) if case.name == "unchanged"]
    assert read_bars("verdict")["unchanged"].met(case) is met
    assert case.note.startswith(f"{2 * REPETITIONS} ")


def test_the_table_has_a_row_a_cell() -> None:
    text = error_rate_cases.table([outcome(runs=8), outcome(runs=10)])
    assert "| blocked | 8 | 5 \\| 80 80 80 | 5 \\| 80 80 80 | 50 \\| 100 100 100 |" in text
    assert "| blocked | 10 | 100 | 0 | 0 | 0 | 0 | 0 |" in text


def test_what_is_not_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "- Not in the table: benchstat and Otava, not installed" in error_rate_cases.table(
        [outcome()]
    )
    monkeypatch.setattr(simulate, "carried_out", lambda _: outcome())
    monkeypatch.setattr(simulate, "ProcessPoolExecutor", lambda **_: ThreadPoolExecutor())
    simulate.outcomes([BLOCKED], [8], EFFECTS, CHUNK)
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if line.startswith("not in the table: benchstat and Otava")]


@pytest.mark.exhaustive
def test_a_cell_is_the_same_whenever_it_is_computed() -> None:
    task = Task(SCENARIOS[0], 6, EFFECTS, CHUNK, CHUNK + 2)
    first, again = carried_out(task), carried_out(task)
    assert first.words == again.words
    assert all((first.verdicts[name] == again.verdicts[name]).all() for name in first.verdicts)
    assert [len(words) for words in first.words] == [len(EFFECTS)] * 2
    assert (first.verdicts[TARE] == 1).tolist() == [
        [w == "slower" for w in ws] for ws in first.words
    ]
