# SPDX-License-Identifier: Apache-2.0
"""The best-fit comparison on runs whose answer is known."""

import numpy as np
import pytest

from tare.stats.arrays import Array
from tare.stats.best_fit import PERCENTILES, _distance, best_fit, best_run


def _runs(shifts: list[float], seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.normal(100 + shift, 1, 500) for shift in shifts]


def test_the_best_run_is_the_one_in_the_middle() -> None:
    runs = _runs([2, -2, 0, 8], seed=1)
    assert best_run(runs) == 2


def test_two_conditions_are_compared_by_their_best_runs() -> None:
    first, second = _runs([5, 0, 0.1], seed=1), _runs([2, 2.1, -9, 2], seed=2)
    found = best_fit(first, second)
    assert found is not None
    assert found.first in (1, 2)
    assert found.second in (0, 1, 3)
    a, b = first[found.first], second[found.second]
    assert found.anderson_darling > 100
    assert found.anderson_darling_p == 0.001
    steps = np.concatenate([a, b])
    literal = max(abs((a <= x).mean() - (b <= x).mean()) for x in steps)
    assert found.kolmogorov_smirnov == pytest.approx(literal)
    assert found.among_first == max(_distance(a, run) for run in first if run is not a)
    assert found.percentiles[0] == (np.median(a), np.median(b))
    assert found.percentiles[-1] == (a.max(), b.max())
    assert len(found.percentiles) == len(PERCENTILES)


def test_equal_samples_give_the_row_of_the_thesis() -> None:
    """Its baseline row: -1.31 at 10,000 requests, p at its cap."""
    run = np.random.default_rng(3).lognormal(0, 0.3, 10_000)
    found = best_fit([run], [run])
    assert found is not None
    assert (round(found.anderson_darling, 2), found.anderson_darling_p) == (-1.31, 0.25)
    assert (found.kolmogorov_smirnov, found.kolmogorov_smirnov_p) == (0, 1)
    assert found.among_first is None


def test_what_cannot_be_compared() -> None:
    flat = np.full(5, 7.0)
    assert best_fit([flat], [flat]) is None
    assert best_run([flat, flat, flat]) == 0
    with pytest.raises(ValueError, match="at least one run"):
        best_run([])
    with pytest.raises(ValueError, match="at least 2 values"):
        best_fit([[1.0]], [flat])
