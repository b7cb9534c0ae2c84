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
def test_quantiles_are_numpys(lists: list[list[int]], step: int) -> None:
    values = np.unique(np.concatenate(lists))
    quantiles = OrderedQuantiles([len(one) for one in lists], AT)
    for start in range(0, values.size, step):
        piece = values[start : start + step]
        table = np.array([[one.count(value) for one in lists] for value in piece])
        row, run = np.nonzero(table)
        quantiles.add(piece[row], run, table[row, run])
    assert quantiles.table() == pytest.approx(
        np.array([np.quantile(one, AT) for one in lists]), rel=1e-12
    )


def test_values_that_have_not_come_have_no_quantile() -> None:
    assert np.isnan(OrderedQuantiles([2], [0.5]).table()).all()


@pytest.mark.parametrize(("sizes", "at"), [([0], [0.5]), ([1], [1.5]), ([1], [-0.1]), ([], [0.5])])
def test_what_has_no_quantiles(sizes: list[int], at: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        OrderedQuantiles(sizes, at)
