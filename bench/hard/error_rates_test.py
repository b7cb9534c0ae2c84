# SPDX-License-Identifier: Apache-2.0
"""The hard cases: what is drawn is what their names say, and every case has its bar."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from bench.cases import read_bars
from bench.hard import error_rates, hard_cases
from bench.hard.error_rates import (
    CaseRates,
    FamilyRates,
    Pilot,
    found_at_mde,
    rates_of_case,
    rates_of_family,
)
from bench.hard.hard_cases import HardCase, Side
from bench.verdict.families import Family, draw


def drawn(case: HardCase) -> tuple[np.ndarray, np.ndarray]:
    """Medians of the runs of both sides in ns."""
    experiment = case.draw(np.random.default_rng(1))
    sides = [
        [run.summaries["p50"] for run in experiment.runs if run.condition == name]
        for name in ("baseline", "condition")
    ]
    return np.array(sides[0]), np.array(sides[1])


def test_the_effect_is_the_one_that_is_stated() -> None:
    base, condition = drawn(HardCase("", Side(), Side(slower=1.3), 0.3))
    assert condition.mean() / base.mean() == pytest.approx(1.3, abs=0.05)


def test_rounded_sides_are_interpolated() -> None:
    side = Side(step_ns=hard_cases.MILLISECOND)
    base, condition = drawn(HardCase("", side, Side(), typical_ns=3e6))
    assert (base % hard_cases.MILLISECOND != 0).all()
    assert condition.mean() / base.mean() == pytest.approx(1, abs=0.05)


def test_names_are_unique_and_select_the_cases_of_every_bar() -> None:
    names = [case.name for case in hard_cases.cases()]
    assert len(names) == len(set(names))
    nothing = {
        case.name: CaseRates(case.name, ("unchanged",) * 3, 100.0) for case in hard_cases.cases()
    }
    groups = (
        hard_cases.unequal_lengths,
        hard_cases.tails,
        hard_cases.rounded,
        hard_cases.tail_lengths,
    )
    lengths, tails, rounded, p99 = ([nothing[case.name] for case in part()] for part in groups)
    found = [
        *error_rates._lengths(lengths, 3),
        *error_rates._tails(tails, 3),
        *error_rates._rounded(rounded, 3),
        *error_rates._tail_lengths(p99, 3),
        *error_rates._families(
            [
                error_rates.FamilyRates(family, 3, 0.0, 100.0, 0.0)
                for family in (*error_rates.FAMILIES, error_rates.ALL_SLOWER)
            ],
        ),
    ]
    bars = read_bars("hard")
    assert all(bars[case.name].met(case) for case in found if case.name.endswith("alarms"))
    assert not any(
        bars[case.name].met(case)
        for case in found
        if case.name.endswith("power") and not case.name.startswith("families")
    )


def test_a_family_that_is_changed_everywhere_has_no_unchanged_part() -> None:
    family = Family(conditions=2, spans=2, effect=3.0, everywhere=True)
    assert len(family.changed) == 4
    found = rates_of_family((family, range(2)))
    assert (found.found, found.alarms) == (100, 0)


@pytest.mark.parametrize("pilot", error_rates.PILOTS[::3], ids=lambda pilot: pilot.name)
def test_some_effects_as_large_as_the_mde_are_found(pilot: Pilot) -> None:
    name, share = found_at_mde((pilot, 2))
    assert name == pilot.name
    assert share in (0, 50, 100)
    assert pilot.experiment(1.0, np.random.default_rng(2)).paired == (pilot.design == "blocked")


def test_verdicts_are_counted() -> None:
    found = rates_of_case((HardCase("three times", Side(300), Side(300, 3.0), 2.0), 2))
    assert found.words == ("slower", "slower")
    assert found.share("slower") == 100
    assert found.covered in (0, 50, 100)


def test_a_family_above_the_level_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def alarming(task: tuple[Family, range]) -> FamilyRates:
        family, drawn = task
        often = len(drawn) == 100 and family.blocks == 8
        return FamilyRates(family, len(drawn), 9.5 if often else 5.0, 100, 100)

    monkeypatch.setattr(error_rates, "rates_of_family", alarming)
    both = [Family(2, blocks=blocks, effect=0.3, everywhere=True) for blocks in (6, 8)]
    with ThreadPoolExecutor() as pool:
        found = error_rates._rates_of_families(pool, both, 100)
    assert [(result.family.blocks, result.repetitions) for result in found] == [(6, 100), (8, 400)]
    cases = [case for case in error_rates._families(found) if case.name == "families-alarms"]
    assert all(read_bars("hard")["families-alarms"].met(case) for case in cases)


def test_the_changed_span_of_a_family_is_no_false_alarm() -> None:
    family = Family(conditions=1, spans=2, blocks=6, effect=3.0)
    assert family.changed == {("c1", "s1")}
    assert rates_of_family((family, range(2))).found == 100
    experiment = draw(family, np.random.default_rng(1))
    assert {run.span for run in experiment.runs} == {"request", "s1"}
