# SPDX-License-Identifier: Apache-2.0
"""The published t-test against SciPy's."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tare.stats.arrays import Array
from tare.stats.pooled_t import pooled_t

values = arrays.arrays(np.float64, 20, elements=st.floats(1, 1e6))


fewer = arrays.arrays(np.float64, 7, elements=st.floats(1, 1e6))


@given(values, values | fewer)
def test_it_is_scipys_equal_variance_test(first: Array, second: Array) -> None:
    assume(first.std() > 1e-3 and second.std() > 1e-3)
    found = pooled_t(first, second)
    assert found is not None
    expected = stats.ttest_ind(second, first)
    assert found.t == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.mean_difference == pytest.approx(second.mean() - first.mean(), abs=1e-9)
    assert (found.n, found.m) == (20, second.size)
    if found.n == found.m:  # as published
        spread = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
        assert found.pooled_spread == pytest.approx(spread)
        error = found.pooled_spread * np.sqrt(2 / found.n)
        assert found.t == pytest.approx(found.mean_difference / error, abs=1e-9)


def test_undefined_results_are_none() -> None:
    assert pooled_t([1], [2]) is None
    assert pooled_t([1, 1], [1, 1]) is None
