# SPDX-License-Identifier: Apache-2.0
"""Effect sizes against pairs counted one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.stats.effect_size import cliffs_delta, vargha_delaney

ties = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


@given(ties, ties)
def test_they_count_pairs(first: list[float], second: list[float]) -> None:
    pairs = [(a, b) for a in first for b in second]
    above, below = (sum(sign * (b - a) > 0 for a, b in pairs) for sign in (1, -1))
    equal = len(pairs) - above - below
    assert vargha_delaney(first, second) == pytest.approx((above + equal / 2) / len(pairs))
    assert cliffs_delta(first, second) == pytest.approx((above - below) / len(pairs))


def test_sums_of_a_million_values_do_not_overflow() -> None:
    values = np.arange(1_000_000.0)
    assert vargha_delaney(values, values + 0.5) == pytest.approx(0.5 + 0.5e-6, abs=1e-12)


def test_an_empty_sample_is_above_nothing() -> None:
    assert vargha_delaney([], [1.0]) is None
    assert cliffs_delta([1.0], []) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        cliffs_delta([bad], [1.0])
    with pytest.raises(ValueError, match="finite"):
        vargha_delaney([1.0], [bad])
