# SPDX-License-Identifier: Apache-2.0
"""Gatekeeping against Holm, a case by hand, and how often it raises any false alarm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from tare.stats.gatekeeping import gatekeep
from tare.stats.multiplicity import holm

FLOW = (None, 0, 0, 1, 1, 1, 2, None, 7)
"""A request with two services, of three spans and of one; another request with one span."""
shares = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@given(shares)
def test_roots_alone_are_holms_procedure(p: list[float]) -> None:
    assert gatekeep(p, [None] * len(p)) == pytest.approx(holm(p))


@given(shares, st.integers(0, 1000))
def test_no_span_is_below_the_one_around_it(p: list[float], seed: int) -> None:
    generator = np.random.default_rng(seed)
    parents = [None, *(int(generator.integers(place)) for place in range(1, len(p)))]
    adjusted = gatekeep(p, parents)
    assert (adjusted >= np.array(p) - 1e-12).all()
    assert all(
        parent is None or adjusted[place] >= adjusted[parent]
        for place, parent in enumerate(parents)
    )


def test_the_root_is_asked_at_all_of_alpha_and_leaves_share_what_it_hands_on() -> None:
    """Leaves of one root: Holm among them, floored by the root."""
    assert gatekeep([0.04, 0.01, 0.02, 0.5], [None, 0, 0, 0]) == pytest.approx(
        [0.04, 0.04, 0.04, 0.5], rel=1e-5
    )
    assert gatekeep([0.2, 0.0, 0.0], [None, 0, 0]) == pytest.approx([0.2, 0.2, 0.2])


def test_inner_spans_are_weighed_by_what_they_hold() -> None:
    """Of the root's two spans one holds three, the other one: 3/4 and 1/4 of alpha."""
    found = gatekeep([0.001, 0.03, 0.5, 0.3, 0.3, 0.3, 0.3, 0.4, 0.4], FLOW)
    assert found[0] == pytest.approx(0.002)
    assert found[1] == pytest.approx(0.03 / 0.75 / 0.5, rel=1e-5)


def test_what_a_whole_tree_rejected_goes_to_the_other_roots() -> None:
    """However deep the tree is."""
    deep = [None, *range(12), None]
    found = gatekeep([1e-9] * 13 + [0.04], deep)
    assert found[-1] == pytest.approx(0.04)
    assert gatekeep([1e-9] * 12 + [1.0, 0.04], deep)[-1] == pytest.approx(0.08, rel=1e-4)


@pytest.mark.parametrize("differs", [[], [0], [0, 1], [0, 7], [0, 1, 3, 4], [0, 2, 6], [3, 4]])
@pytest.mark.parametrize("alike", [0.0, 0.6])
def test_any_false_alarm_is_as_rare_as_alpha_says(differs: list[int], alike: float) -> None:
    """Whichever spans differ, and also where p-values of spans move together."""
    tries, equal = 1_000, np.ones(len(FLOW), bool)
    equal[differs] = False
    generator = np.random.default_rng(1)
    z = alike * generator.normal(size=(tries, 1)) - 4 * ~equal
    z = z + np.sqrt(1 - alike**2) * generator.normal(size=(tries, len(FLOW)))
    alarms = np.mean([(gatekeep(one, FLOW)[equal] <= 0.05).any() for one in ndtr(z)])
    assert 0 < alarms <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tries)


@pytest.mark.parametrize(
    ("p", "parents"),
    [
        ([0.1, 1.1], [None, 0]),
        ([0.1, np.nan], [None, 0]),
        ([0.1], [None, 0]),
        ([0.1, 0.2], [None, 2]),
        ([0.1, 0.2, 0.3], [None, 2, 1]),
        ([0.1, 0.2, 0.3, 0.4], [None, 2, 1, 1]),
    ],
)
def test_what_is_no_tree_of_p_values_is_refused(p: list[float], parents: list[int | None]) -> None:
    with pytest.raises(ValueError, match="expected"):
        gatekeep(p, parents)


def test_nothing_asked_is_nothing_adjusted() -> None:
    assert gatekeep([], []).size == 0
