# SPDX-License-Identifier: Apache-2.0
"""The run-distance test against its definition in loops, and its level and power."""

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tare.stats.arrays import Array
from tare.stats.distance_permutations import run_distance_p
from tare.stats.permutation import SAMPLES, sign_flip

APART = np.array([[0.0, 1], [1, 0]])


def between_less_within(matrix: Array, second: tuple[bool, ...]) -> float:
    """T of equally many runs, pair by pair."""
    between: list[float] = []
    within: list[float] = []
    for i, j in combinations(range(len(second)), 2):
        (within if second[i] == second[j] else between).append(matrix[i, j])
    return float(np.mean(between) - np.mean(within))


def energy(matrix: Array, second: tuple[bool, ...]) -> float:
    """T of any number of runs, pair by pair."""
    base = [i for i, label in enumerate(second) if not label]
    mine = [i for i, label in enumerate(second) if label]
    means = [
        np.mean([[matrix[i, j] for i in a] for j in b]) for a in (base, mine) for b in (base, mine)
    ]
    return float(means[1] + means[2] - means[0] - means[3])


def some_distances(generator: np.random.Generator, runs: int) -> Array:
    """Small integers, so that many labellings tie."""
    upper = np.triu(generator.integers(0, 6, (runs, runs)).astype(np.float64), 1)
    return upper + upper.T


@given(st.integers(0, 500), st.integers(2, 5))
def test_with_blocks_it_is_the_share_of_flips_as_far(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = some_distances(generator, 2 * count)
    blocks = np.repeat(np.arange(count), 2)
    observed = between_less_within(matrix, (False, True) * count)
    as_far = []
    for flips in product((False, True), repeat=count):
        labels = tuple(label for flip in flips for label in (flip, not flip))
        as_far.append(between_less_within(matrix, labels) >= observed - 1e-9)
    order = generator.permutation(2 * count)
    found = run_distance_p(
        matrix[np.ix_(order, order)], np.tile([False, True], count)[order], blocks[order]
    )
    assert found == pytest.approx(np.mean(as_far))


@settings(max_examples=40)
@given(st.integers(0, 500), st.integers(1, 4), st.integers(1, 5))
def test_without_blocks_it_is_the_share_of_labellings_as_far(seed: int, n: int, m: int) -> None:
    matrix = some_distances(np.random.default_rng(seed), n + m)
    second = (False,) * n + (True,) * m
    ways = [tuple(i in chosen for i in range(n + m)) for chosen in combinations(range(n + m), m)]
    for statistic in [energy] + [between_less_within] * (n == m > 1):
        as_far = [statistic(matrix, way) >= statistic(matrix, second) - 1e-9 for way in ways]
        assert run_distance_p(matrix, second) == pytest.approx(np.mean(as_far))


def distances_of(levels: Array) -> Array:
    return np.asarray((levels[:, None] - levels) ** 2)


def test_of_squared_differences_it_is_the_test_of_means() -> None:
    """What all runs of a block share is gone, however large it is."""
    generator = np.random.default_rng(4)
    difference = generator.normal(0.5, 1, 9)
    drift = generator.normal(0, 100, 9)
    levels = np.concatenate([drift, drift + difference])
    found = run_distance_p(distances_of(levels), np.arange(18) >= 9, np.tile(np.arange(9), 2))
    assert found == sign_flip(difference)


@pytest.mark.parametrize("blocked", [True, False])
def test_drawn_relabellings_come_close_to_the_t_test(blocked: bool) -> None:
    generator = np.random.default_rng(5)
    levels = np.concatenate([generator.normal(0, 1, 24), generator.normal(0.5, 1, 24)])
    second = np.arange(48) >= 24
    found = run_distance_p(
        distances_of(levels), second, np.tile(np.arange(24), 2) if blocked else None
    )
    base, mine = levels[:24], levels[24:]
    expected = stats.ttest_rel(base, mine) if blocked else stats.ttest_ind(base, mine)
    assert found == pytest.approx(expected.pvalue, abs=0.015)
    apart = run_distance_p(
        distances_of(levels + 1e3 * second), second, np.tile(np.arange(24), 2) if blocked else None
    )
    assert apart == 1 / (SAMPLES + 1)


def test_blocks_that_lack_a_run_are_left_out() -> None:
    levels = np.array([0.0, 1, 0.1, 1.2, 0.2, 1.1, 7, 9])
    second = np.array([0, 1, 0, 1, 0, 1, 0, 1], bool)
    blocks = np.array([1, 1, 2, 2, 3, 3, 4, 5])
    found = run_distance_p(distances_of(levels), second, blocks)
    assert found == run_distance_p(distances_of(levels[:6]), second[:6], blocks[:6]) == 0.25


def test_what_cannot_be_relabelled_has_no_p() -> None:
    assert run_distance_p(APART, [False, True], [1, 1]) is None
    assert run_distance_p(APART, [True, True]) is None
    assert run_distance_p(np.zeros((0, 0)), []) is None
    assert run_distance_p(np.zeros((6, 6)), [False, True] * 3) == 1


@pytest.mark.parametrize(
    ("matrix", "second", "blocks"),
    [
        ([[0, np.nan], [np.nan, 0]], [0, 1], None),
        ([[0, np.inf], [np.inf, 0]], [0, 1], None),
        ([[0, 1], [2, 0]], [0, 1], None),
        (APART, [0, 1, 1], None),
        (APART, [0, 1], [1]),
        (np.zeros((3, 3)), [0, 1, 1], [1, 1, 1]),
    ],
)
def test_what_are_no_distances_is_refused(
    matrix: npt.ArrayLike, second: list[int], blocks: list[int] | None
) -> None:
    with pytest.raises(ValueError, match="expected"):
        run_distance_p(matrix, second, blocks)


def kolmogorov(runs: Array) -> Array:
    """Squared, between all runs (r, n)."""
    values = np.quantile(runs, np.linspace(0, 1, 200))
    shares = np.array([np.searchsorted(np.sort(run), values) / run.size for run in runs])
    return np.asarray(np.abs(shares[:, None] - shares).max(axis=2) ** 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("runs", [6, 8, 10])
@pytest.mark.parametrize("blocked", [True, False])
def test_equal_conditions_are_told_apart_by_chance_only_and_unequal_ones_mostly(
    runs: int, blocked: bool
) -> None:
    """Runs scatter by 2 %, blocks drift by 2 %, the difference is 5 %, p at most 0.05."""
    generator = np.random.default_rng(100 * runs + blocked)
    tries, second = 200 if blocked else 60, np.arange(2 * runs) >= runs
    block = np.tile(np.arange(runs), 2) if blocked else None
    found = {0.0: 0, 0.05: 0}
    for effect in found:
        for _ in range(tries):
            levels = generator.normal(0, 0.02, 2 * runs) + effect * second
            if blocked:
                levels += np.tile(generator.normal(0, 0.02, runs), 2)
            requests = generator.normal(levels[:, None], 0.1, (2 * runs, 150))
            p = run_distance_p(kolmogorov(requests), second, block)
            assert p is not None
            found[effect] += p <= 0.05
    assert found[0.0] / tries <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tries)
    assert found[0.05] / tries >= {6: 0.6, 8: 0.85, 10: 0.93}[runs]
