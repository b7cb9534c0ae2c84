# SPDX-License-Identifier: Apache-2.0
"""The segmentation of least cost, against all segmentations of short series."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from tare.stats.arrays import Array
from tare.stats.change_points import change_points


def segmentations(size: int, shortest: int) -> Iterator[tuple[int, ...]]:
    yield (0, size)
    for last in range(shortest, size - shortest + 1):
        yield from ((*before, size) for before in segmentations(last, shortest))


def cost(points: Array, bounds: Sequence[int], penalty: float) -> float:
    parts = (points[start:end] for start, end in pairwise(bounds))
    return sum(float(((part - part.mean()) ** 2).sum()) + penalty for part in parts)


@pytest.mark.parametrize("seed", range(40))
def test_no_segmentation_costs_less(seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = generator.normal(0, 1, 11) + 3 * (np.arange(11) >= generator.integers(12))
    penalty, shortest = float(generator.uniform(0.01, 6)), int(generator.integers(1, 4))
    found = change_points(points, penalty, shortest)
    assert min(np.diff(found)) >= shortest
    least = min(cost(points, bounds, penalty) for bounds in segmentations(11, shortest))
    assert cost(points, found, penalty) == pytest.approx(least)


def test_the_steps_of_a_series_are_found() -> None:
    points = np.repeat([5.0, 1.0, 2.0], [30, 50, 20]) + 1e-3 * np.arange(100) % 0.01
    assert change_points(points, 0.1, 3) == [0, 30, 80, 100]
    assert change_points(points, 1e6) == [0, 100]


def test_a_series_that_is_too_short_or_not_finite_is_refused() -> None:
    assert change_points([1.0, 2.0], 1.0, 2) == [0, 2]
    for bad in ([1.0], [1.0, float("nan"), 2.0]):
        with pytest.raises(ValueError, match=r"."):
            change_points(bad, 1.0, 2)
