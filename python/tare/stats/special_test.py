# SPDX-License-Identifier: Apache-2.0
"""Special functions against SciPy's, from one degree of freedom to ten million."""

from math import inf, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special as scipy

from tare.stats.special import (
    beta_cdf,
    beta_quantile,
    chi_squared_quantile,
    digamma,
    normal_quantile,
    student_cdf,
    student_quantile,
    trigamma,
)

freedoms = st.one_of(st.integers(1, 100).map(float), st.floats(0.5, 1e7))
probabilities = st.floats(1e-12, 1 - 1e-12)


@given(freedoms, st.floats(-60, 60))
def test_student_cdf_is_scipys(freedom: float, t: float) -> None:
    expected = scipy.stdtr(freedom, t)
    # Far out in the tails of many degrees SciPy loses digits before we do.
    assert student_cdf(freedom, t) == pytest.approx(expected, rel=1e-9, abs=1e-290)


@given(freedoms, probabilities)
def test_student_quantile_is_where_the_cdf_is_p(freedom: float, p: float) -> None:
    found = student_quantile(freedom, p)
    assert found == pytest.approx(scipy.stdtrit(freedom, p), rel=1e-9, abs=1e-12)
    assert student_cdf(freedom, found) == pytest.approx(p, rel=1e-10)


def test_student_quantile_has_its_ends() -> None:
    assert student_quantile(5, 1) == inf == -student_quantile(5, 0)
    assert student_quantile(5, 0.5) == 0
    assert isnan(student_quantile(0, 0.9))
    assert isnan(student_quantile(5, 1.1))
    assert student_cdf(5, inf) == 1 - student_cdf(5, -inf) == 1


@given(st.floats(0.5, 1e5), st.floats(0.5, 1e5), st.floats(0, 1))
def test_beta_cdf_is_scipys(a: float, b: float, x: float) -> None:
    assert beta_cdf(a, b, x) == pytest.approx(scipy.betainc(a, b, x), rel=1e-9, abs=1e-280)


@given(st.integers(1, 2_000), st.integers(1, 2_000), st.floats(1e-9, 0.999))
def test_beta_quantile_is_scipys(a: int, b: int, p: float) -> None:
    assert beta_quantile(a, b, p) == pytest.approx(scipy.betaincinv(a, b, p), rel=1e-9)


@given(st.integers(1, 5_000), st.floats(0.01, 0.99))
def test_chi_squared_quantile_is_scipys(freedom: int, above: float) -> None:
    assert chi_squared_quantile(freedom, above) == pytest.approx(
        scipy.chdtri(freedom, above), rel=1e-10
    )


@given(st.lists(st.floats(1e-300, 1 - 1e-16), min_size=1))
def test_normal_quantile_is_scipys(p: list[float]) -> None:
    np.testing.assert_allclose(normal_quantile(p), scipy.ndtri(p), rtol=1e-12, atol=1e-15)


def test_normal_quantile_has_its_ends() -> None:
    np.testing.assert_array_equal(
        normal_quantile([0, 0.5, 1, -1, 2, np.nan]), [-inf, 0, inf, np.nan, np.nan, np.nan]
    )


@given(st.lists(st.floats(0.1, 1e12), min_size=1))
def test_digamma_and_trigamma_are_scipys(x: list[float]) -> None:
    np.testing.assert_allclose(digamma(x), scipy.digamma(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(trigamma(x), scipy.zeta(2, x), rtol=1e-12)
