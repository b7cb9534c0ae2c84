# SPDX-License-Identifier: Apache-2.0
"""Adjusted p-values against SciPy and the step-by-step definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from tare.stats.multiplicity import benjamini_hochberg, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def literal_holm(p: list[float]) -> list[float]:
    """Step down: the i-th smallest times how many are not yet rejected, never below the last."""
    adjusted = [0.0] * len(p)
    before = 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        before = max(before, min(1.0, p[index] * (len(p) - rank)))
        adjusted[index] = before
    return adjusted


@given(p_values)
def test_holm_is_the_step_down_procedure(p: list[float]) -> None:
    assert holm(p).tolist() == pytest.approx(literal_holm(p))


@given(p_values)
def test_benjamini_hochberg_is_scipys(p: list[float]) -> None:
    assert benjamini_hochberg(p).tolist() == pytest.approx(false_discovery_control(p).tolist())


def test_none_and_one() -> None:
    assert holm([]).size == benjamini_hochberg([]).size == 0
    assert holm([0.3]) == benjamini_hochberg([0.3]) == 0.3


@pytest.mark.parametrize("bad", [[np.nan], [-0.1], [1.1]])
def test_what_is_no_probability_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        holm(bad)
    with pytest.raises(ValueError, match="expected"):
        benjamini_hochberg(bad)
