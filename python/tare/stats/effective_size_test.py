# SPDX-License-Identifier: Apache-2.0
"""The effective sample size against its definition and a process of known correlation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.stats.arrays import Array
from tare.stats.effective_size import effective_size


def literal(values: Array) -> float:
    """Autocorrelations by their sum, pairs of lags added until a pair is not above zero."""
    n = values.size
    centred = values - values.mean()
    variance = sum(centred**2)

    def correlation(lag: int) -> float:
        return float(sum(centred[i] * centred[i + lag] for i in range(n - lag)) / variance)

    total = 0.0
    for lag in range(0, n // 2 * 2, 2):
        pair = correlation(lag) + correlation(lag + 1)
        if pair <= 0:
            break
        total += pair
    return float(n / max(2 * total - 1, 1))


@given(st.integers(0, 1000), st.integers(4, 40), st.floats(-0.9, 0.95))
def test_it_is_the_initial_positive_sequence(seed: int, size: int, memory: float) -> None:
    noise = np.random.default_rng(seed).normal(size=size)
    series = noise.copy()
    for i in range(1, size):
        series[i] += memory * series[i - 1]
    assert effective_size(series) == pytest.approx(literal(series), rel=1e-6)


def test_an_autoregressive_series_is_worth_what_theory_says() -> None:
    """AR(1) with coefficient r: n (1 - r) / (1 + r)."""
    size, memory = 100_000, 0.8
    noise = np.random.default_rng(5).normal(size=size)
    series = noise.copy()
    for i in range(1, size):
        series[i] += memory * series[i - 1]
    assert effective_size(series) == pytest.approx(size * 0.2 / 1.8, rel=0.1)


def test_a_series_without_spread_or_length_has_none() -> None:
    assert effective_size([1.0] * 10) is None
    assert effective_size([1.0, 2.0, 3.0]) is None
    with pytest.raises(ValueError, match="finite"):
        effective_size([1.0, np.nan, 2.0, 3.0])
