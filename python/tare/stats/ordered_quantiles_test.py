# SPDX-License-Identifier: Apache-2.0
"""Quantiles of a stream against NumPy's of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.stats.ordered_quantiles import OrderedQuantiles

AT = (0.0, 0.01, 0.25, 0.5, 0.99, 1.0)


@given(
    st.lists(st.lists(st.integers(-9, 99), min_size=1, max_size=40), min_size=1, max_size=4),
    st.integers(1, 20),
)
def test_quantiles_are_numpys_of_type_8(lists: list[list[int]], step: int) -> None:
    values = np.unique(np.concatenate(lists))
    quantiles = OrderedQuantiles([len(sample) for sample in lists], AT)
    for start in range(0, values.size, step):
        piece = values[start : start + step]
        table = np.array([[sample.count(value) for sample in lists] for value in piece])
        row, run = np.nonzero(table)
        quantiles.add(piece[row], run, table[row, run])
    assert quantiles.table() == pytest.approx(
        np.array([np.quantile(sample, AT, method="median_unbiased") for sample in lists]), rel=1e-12
    )


def test_values_that_have_not_come_have_no_quantile() -> None:
    assert np.isnan(OrderedQuantiles([2], [0.5]).table()).all()


@pytest.mark.parametrize(("sizes", "at"), [([0], [0.5]), ([1], [1.5]), ([1], [-0.1]), ([], [0.5])])
def test_what_has_no_quantiles(sizes: list[int], at: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        OrderedQuantiles(sizes, at)


@pytest.mark.parametrize("scatter", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("truth", [3.0, 3.3, 3.45, 5.0])
def test_quantiles_of_rounded_values_are_interpolated_in_their_step(
    truth: float, scatter: float
) -> None:
    generator = np.random.default_rng(4)
    exact = truth * np.exp(generator.normal(0, scatter, 20_000))
    values, counts = np.unique(np.round(exact), return_counts=True)
    for piece in (1, 2, values.size):
        rounded = OrderedQuantiles([exact.size], [0.25, 0.5, 0.9], [1.0 + 1e-9])
        for start in range(0, values.size, piece):
            part = slice(start, start + piece)
            rounded.add(values[part], np.zeros(values[part].size, dtype=int), counts[part])
        expected = np.quantile(exact, [0.25, 0.5, 0.9])
        assert rounded.table()[0] == pytest.approx(expected, rel=0.01)


def test_a_value_that_comes_in_two_rows_is_one_step() -> None:
    once, twice = (OrderedQuantiles([10], [0.3, 0.5], [2.0]) for _ in range(2))
    once.add(np.array([2, 4]), np.array([0, 0]), np.array([4, 6]))
    twice.add(np.array([2, 2, 4]), np.array([0, 0, 0]), np.array([1, 3, 6]))
    assert twice.table() == pytest.approx(once.table())


def test_the_step_around_zero_is_divided_evenly() -> None:
    quantiles = OrderedQuantiles([4], [0.0, 0.5, 1.0], [10.0])
    quantiles.add(np.array([0]), np.array([0]), np.array([4]))
    table = quantiles.table()[0]
    assert 0 <= table[0] <= table[1] <= table[2] <= 5


def test_a_step_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="step"):
        OrderedQuantiles([1], [0.5], [-1.0])
