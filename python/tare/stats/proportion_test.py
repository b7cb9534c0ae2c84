# SPDX-License-Identifier: Apache-2.0
"""The interval of a share against SciPy and against what it promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tare.stats.proportion import clopper_pearson


@given(st.integers(0, 200), st.integers(1, 200), st.sampled_from([0.8, 0.95, 0.99]))
def test_it_is_scipys(hits: int, misses: int, level: float) -> None:
    expected = stats.binomtest(hits, hits + misses).proportion_ci(level, method="exact")
    assert clopper_pearson(hits, hits + misses, level) == pytest.approx(
        (expected.low, expected.high)
    )


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
def test_it_covers_the_share_at_least_as_often_as_it_says(share: float) -> None:
    """Summed over all outcomes of 100 tries."""
    outcomes = [
        (stats.binom.pmf(hits, 100, share), clopper_pearson(hits, 100)) for hits in range(101)
    ]
    assert sum(chance for chance, (low, high) in outcomes if low <= share <= high) >= 0.95


def test_the_ends_are_shares() -> None:
    assert clopper_pearson(0, 0) == (0, 1)
    assert clopper_pearson(0, 5)[0] == 0
    assert clopper_pearson(5, 5)[1] == 1


@pytest.mark.parametrize(("hits", "of", "level"), [(-1, 5, 0.95), (6, 5, 0.95), (1, 5, 1.0)])
def test_what_is_no_share_is_refused(hits: int, of: int, level: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        clopper_pearson(hits, of, level)
