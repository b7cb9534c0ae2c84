# SPDX-License-Identifier: Apache-2.0
"""The spread of a difference, and what is told of it."""

import numpy as np
import pytest
from bench.verdict.slices import Length, freedom, spread, told


def test_of_two_conditions_it_is_that_of_their_differences() -> None:
    values = np.random.default_rng(1).normal(size=(7, 2))
    expected = np.std(values[:, 1] - values[:, 0], ddof=1)
    assert spread(values) == pytest.approx(expected)


def test_neither_blocks_nor_conditions_count() -> None:
    generator = np.random.default_rng(1)
    values = 0.01 * generator.normal(size=(4_000, 3))
    moved = values + generator.normal(size=(4_000, 1)) + [0.0, 0.5, -0.2]
    assert spread(moved) == pytest.approx(spread(values))
    assert spread(moved) == pytest.approx(0.01 * np.sqrt(2), rel=0.05)


def test_every_length_has_a_row() -> None:
    text = told([Length("1ms", 0.004, 0.005, 0.03, 10)], 6)
    assert "| 1ms | 0.40 % | 0.28 to 0.70 % | 0.54 % | 0.50 % | 0.68 % | 3 % |" in text


def test_the_interval_of_a_spread_covers_it() -> None:
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        values = generator.normal(size=(6, 3))
        low, high = Length("", spread(values), 0, 0, freedom(values)).interval
        covered += low < np.sqrt(2) < high
    assert 0.92 < covered / 400 < 0.98
