# SPDX-License-Identifier: Apache-2.0
"""MSER-5 against its definition and on series with a known warm-up."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.stats.arrays import Array
from tare.stats.warm_up import mser

BATCH = 5


def mser5(series: npt.ArrayLike) -> int | None:
    """By its definition: `mser` of means of five."""
    values = np.asarray(series, dtype=float)
    count = values.size // BATCH
    cut = mser(values[: count * BATCH].reshape(count, BATCH).mean(axis=1))
    return None if cut is None else cut * BATCH


def literal(values: Array) -> int | None:
    """Every cut tried in turn."""
    count = values.size // BATCH
    batches = [values[i * BATCH : (i + 1) * BATCH].mean() for i in range(count)]
    errors = []
    for cut in range(count - count // 10):
        kept = np.array(batches[cut:])
        errors.append(((kept - kept.mean()) ** 2).sum() / kept.size**2)
    best = int(np.argmin(errors))
    return best * BATCH if best <= count // 2 else None


@given(st.integers(0, 1000), st.integers(50, 300), st.floats(0, 5))
def test_it_is_the_cut_of_least_standard_error(seed: int, size: int, height: float) -> None:
    generator = np.random.default_rng(seed)
    series = generator.normal(10, 1, size) + height * np.exp(-np.arange(size) / 20)
    assert mser5(series) == literal(series)


def test_a_slow_start_is_cut_off() -> None:
    generator = np.random.default_rng(6)
    series = generator.normal(100, 1, 5_000)
    series[:1_000] += np.linspace(50, 0, 1_000)
    cut = mser5(series)
    assert cut is not None
    assert 800 <= cut <= 1_100


def test_a_steady_run_loses_little() -> None:
    cut = mser5(np.random.default_rng(7).normal(100, 1, 5_000))
    assert cut is not None
    assert cut < 500


@pytest.mark.parametrize("tail", [10.0, 7.3, 7_300_000.0, 1e-3])
@pytest.mark.parametrize("warm", [100, 400])
def test_a_constant_tail_begins_where_the_warm_up_ends(tail: float, warm: int) -> None:
    series = np.full(1_000, tail)
    series[:warm] = np.linspace(50 * tail, 10 * tail, warm)
    assert mser5(series) == warm


def test_a_run_that_never_settles_has_no_cut() -> None:
    series = np.concatenate([np.linspace(100, 50, 700), np.full(300, 50.0)])
    assert mser5(series) is None
    assert mser5(np.ones(49)) is None
    with pytest.raises(ValueError, match="finite"):
        mser5([np.inf] * 100)
