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


@given(values, values)
def test_it_is_scipys_equal_variance_test(one: Array, two: Array) -> None:
    assume(one.std() > 1e-3 and two.std() > 1e-3)
    found = pooled_t(one, two)
    assert found is not None
    expected = stats.ttest_ind(two, one)
    assert found.t == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.mean_difference == pytest.approx(two.mean() - one.mean(), abs=1e-9)
    assert found.n == 20


def test_unequal_sizes_are_refused_and_undefined_results_are_none() -> None:
    with pytest.raises(ValueError, match="equally many"):
        pooled_t([1, 2], [1, 2, 3])
    assert pooled_t([1], [2]) is None
    assert pooled_t([1, 1], [1, 1]) is None
