# SPDX-License-Identifier: Apache-2.0
"""Quantiles against SciPy, counted samples against listed ones, and what few samples support."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.mstats import hdquantiles

from tare.stats.quantile import harrell_davis, supported

AT = [0.05, 0.5, 0.9, 0.99]


@given(st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=60))
def test_they_are_scipys(values: list[float]) -> None:
    assert harrell_davis(values, AT) == pytest.approx(
        np.asarray(hdquantiles(values, AT)), abs=1e-12
    )


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), min_size=1, max_size=20))
def test_a_count_stands_for_so_many_samples(table: list[tuple[int, int]]) -> None:
    values, counts = (np.array(column, dtype=float) for column in zip(*table, strict=True))
    if not counts.any():
        with pytest.raises(ValueError, match="count"):
            harrell_davis(values, AT, counts)
        return
    listed = np.repeat(values, counts.astype(int))
    assert harrell_davis(values, AT, counts) == pytest.approx(harrell_davis(listed, AT), abs=1e-12)


def test_a_billion_counted_samples_are_asked_at_once() -> None:
    found = harrell_davis([1.0, 2.0, 3.0], [0.25, 0.75], [5e8, 1e8, 4e8])
    assert found == pytest.approx([1, 3])


def test_one_value_is_every_quantile() -> None:
    assert harrell_davis([7.0], AT) == pytest.approx([7] * 4)


@pytest.mark.parametrize(
    ("values", "at", "counts"),
    [
        ([], [0.5], None),
        ([np.nan], [0.5], None),
        ([np.inf], [0.5], None),
        ([1.0], [0.0], None),
        ([1.0], [1.0], None),
        ([1.0, 2.0], [0.5], [1.0]),
        ([1.0, 2.0], [0.5], [1.0, -1.0]),
    ],
)
def test_what_has_no_quantile_is_refused(
    values: list[float], at: list[float], counts: list[float] | None
) -> None:
    with pytest.raises(ValueError, match="expected"):
        harrell_davis(values, at, counts)


@pytest.mark.parametrize(
    ("at", "least"), [(0.5, 20), (0.9, 100), (0.99, 1_000), (0.999, 30_000), (0.001, 30_000)]
)
def test_so_many_independent_requests_support_a_quantile(at: float, least: int) -> None:
    assert supported(least, at)
    assert not supported(least - 1, at)


@pytest.mark.parametrize(("samples", "least", "most"), [(1_000, 0, 0.001), (200, 0.25, 1)])
def test_with_fewer_p99_is_what_the_slowest_request_makes_of_it(
    samples: int, least: float, most: float
) -> None:
    """The weight of the greatest value, with 10 beyond p99 and with 2."""
    values = np.zeros(samples)
    values[-1] = 1
    assert least <= harrell_davis(values, [0.99])[0] <= most
