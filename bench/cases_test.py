# SPDX-License-Identifier: Apache-2.0
from math import inf

import pytest
from bench.cases import Bar, Case, matched, read_bars
from bench.results import ROOT

CASE = Case("one", "subject", "peer", "ns", [3.0, 2.0, 9.0], [1.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("of", "holds", "bar", "met"),
    [
        ("value", "at most", 3, True),
        ("value", "below", 3, False),
        ("least", "at least", 2, True),
        ("least", "at least", 2.1, False),
        ("difference", "at most", 2, True),
        ("difference", "at most", 1.9, False),
        ("ratio", "at least", 3, True),
        ("ratio", "at least", 3.1, False),
    ],
)
def test_a_bar_is_held_turn_by_turn(of: str, holds: str, bar: float, met: bool) -> None:
    assert Bar(of=of, holds=holds, bar=bar, sentence="").met(CASE) is met  # type: ignore[arg-type]


def test_every_part_has_bars_that_can_be_read() -> None:
    parts = [file.parent.name for file in ROOT.glob("bench/*/bars.toml")]
    assert parts
    for part in parts:
        assert all(bar.sentence for bar in read_bars(part).values())


@pytest.mark.parametrize(
    ("of", "holds", "bar", "met"),
    [
        ("upper ratio", "at most", 1.02, False),
        ("upper ratio", "at most", 1.05, True),
        ("lower ratio", "at least", 0.97, True),
        ("lower ratio", "at least", 1, False),
    ],
)
def test_never_slower_is_held_by_an_end_of_the_interval(
    of: str, holds: str, bar: float, met: bool
) -> None:
    turns = [0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04]
    case = Case("case", "subject", "peer", "ns", turns, [1.0] * len(turns))
    assert case.ratio == 1.01
    assert Bar(of=of, holds=holds, bar=bar, sentence="").met(case) is met  # type: ignore[arg-type]


def test_few_turns_hold_no_interval() -> None:
    assert CASE.interval == (0, inf)


def test_the_first_bar_whose_name_matches_a_case_counts() -> None:
    one, other = (Bar("ratio", "at most", bar, "") for bar in (1, 2))
    cases = [Case(name, "subject", "peer", "ns", [1.0], [1.0]) for name in ("a-1", "a-2", "b-1")]
    assert matched({"a-1": one, "a-[12]": other}, cases) == {"a-1": one, "a-2": other}
