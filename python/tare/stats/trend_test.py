# SPDX-License-Identifier: Apache-2.0
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from tare.stats.trend import Trend, trend


def concordance(values: tuple[float, ...]) -> float:
    """Mann's S written out: pairs that rise, less pairs that fall."""
    return float(sum(np.sign(later - earlier) for earlier, later in combinations(values, 2)))


def test_slope_and_p_are_those_of_their_definitions() -> None:
    values = (3.0, 1.0, 4.0, 2.5, 5.0, 9.0, 2.0, 6.0)
    slopes = [(values[b] - values[a]) / (b - a) for a, b in combinations(range(len(values)), 2)]
    seen = abs(concordance(values))
    ranks = tuple(float(rank) for rank in range(len(values)))
    as_far = [abs(concordance(order)) >= seen for order in permutations(ranks)]
    found = trend(values)
    assert found is not None
    assert found.slope == pytest.approx(np.median(slopes))
    assert found.p == pytest.approx(np.mean(as_far))


@given(
    st.one_of(
        st.lists(st.integers(0, 9).map(float), min_size=8, max_size=60),
        st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=40, unique=True),
    )
)
def test_slope_and_p_are_scipys(values: list[float]) -> None:
    assume(len(set(values)) > 1)
    found = trend(values)
    assert found is not None
    place = np.arange(len(values))
    assert found.slope == pytest.approx(stats.theilslopes(values, place).slope)
    assert found.p == pytest.approx(stats.kendalltau(place, values).pvalue)


def test_a_flat_series_has_no_trend() -> None:
    assert trend([2.0] * 9) == Trend(0.0, 1.0)


def test_seven_values_say_too_little() -> None:
    assert trend([1, 2, 3, 4, 5, 6, 7]) is None
    rising = trend([1, 2, 3, 4, 5, 6, 7, 8])
    assert rising is not None
    assert rising.slope == 1
    assert rising.p < 0.001
