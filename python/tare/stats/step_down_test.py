# SPDX-License-Identifier: Apache-2.0
"""The step-down maximum against its definition written out, and against Holm's procedure."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from tare.stats.multiplicity import holm
from tare.stats.permutation import label_permutation, sign_flip
from tare.stats.step_down import over_families, paired, unpaired


def literal(observed: np.ndarray, exchanged: list[np.ndarray]) -> np.ndarray:
    """Westfall and Young's algorithm 4.1, one comparison after the other."""
    adjusted = np.empty(observed.size)
    order = np.argsort(-observed)
    least = 0.0
    for rank, place in enumerate(order):
        others = order[rank:]
        hits = [max(exchange[others]) >= observed[place] * (1 - 1e-9) for exchange in exchanged]
        least = max(least, float(np.mean(hits)))
        adjusted[place] = least
    return adjusted


@pytest.mark.parametrize("blocks", [3, 6, 8])
def test_paired_is_the_literal_algorithm(blocks: int) -> None:
    values = np.random.default_rng(blocks).normal([0, 0.5, 3], [1, 2, 1], (blocks, 3))

    def statistic(differences: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(ttest_1samp(differences, 0).statistic))

    signs = [np.array(flips)[:, None] for flips in product([1, -1], repeat=blocks)]
    expected = literal(statistic(values), [statistic(values * flips) for flips in signs])
    np.testing.assert_allclose(paired(values), expected)


def test_unpaired_is_the_literal_algorithm() -> None:
    generator = np.random.default_rng(5)
    first, second = generator.normal(0, 1, (5, 3)), generator.normal([0, 1, 4], 2, (4, 3))
    both = np.concatenate([first, second])

    def statistic(places: tuple[int, ...]) -> np.ndarray:
        there = np.isin(np.arange(9), places)
        return np.asarray(np.abs(ttest_ind(both[there], both[~there], equal_var=False).statistic))

    ways = [statistic(places) for places in combinations(range(9), 4)]
    expected = literal(statistic((5, 6, 7, 8)), ways)
    np.testing.assert_allclose(unpaired(first, second), expected)


def test_one_comparison_alone_has_the_p_of_sign_flips() -> None:
    values = np.random.default_rng(7).normal(0.3, 1, 9)
    assert paired(values[:, None]) == pytest.approx([sign_flip(values)])


def test_one_summary_alone_has_the_p_of_relabelling() -> None:
    first, second = np.random.default_rng(8).normal(0, 1, (2, 6))
    assert unpaired(first[:, None], second[:, None]) == pytest.approx(
        [label_permutation(first, second)]
    )


def test_six_blocks_decide_between_three_conditions_where_holm_cannot() -> None:
    differences = 0.26 + np.random.default_rng(3).normal(0, 0.02, (6, 3))
    assert (paired(differences) < 0.05).all()
    assert (holm([sign_flip(comparison) for comparison in differences.T]) > 0.05).all()


def test_a_noisy_comparison_does_not_mask_a_quiet_one() -> None:
    generator = np.random.default_rng(4)
    noisy, quiet = generator.normal(0, 10, 8), 0.1 + generator.normal(0, 0.01, 8)
    assert paired(np.stack([noisy, quiet], axis=1))[1] < 0.05


def test_a_summary_of_few_runs_hides_no_other() -> None:
    """Of many exchanges one side has fewer than two runs of it, and so no statistic."""
    few = np.full(8, np.nan)
    few[:3] = 0.1, 0.2, 0.4
    clear, scattered = np.full(8, 5.0), np.arange(8.0)
    few_p, clear_p = unpaired(
        np.column_stack([few, scattered / 100]), np.column_stack([few, clear + scattered / 100])
    )
    assert clear_p == pytest.approx(2 / 12_870)
    assert few_p > 0.3


def test_blocks_may_lack_a_comparison() -> None:
    values = np.random.default_rng(9).normal(0.5, 1, (8, 2))
    values[2, 1] = np.nan
    without = np.delete(values[:, 1], 2)
    assert paired(values[:, 1:]) == pytest.approx([sign_flip(without)])
    assert paired(values)[1] >= sign_flip(without)


def test_comparisons_without_any_spread_are_sure_or_nothing() -> None:
    values = np.stack([np.full(6, 0.1), np.zeros(6)], axis=1)
    assert paired(values).tolist() == [2 / 2**6, 1.0]


def test_many_blocks_are_drawn_and_never_zero() -> None:
    values = 5 + np.random.default_rng(2).normal(0, 1, (20, 2))
    assert (paired(values) == 1 / 20_001).all()
    assert paired(values, seed=1) == pytest.approx(paired(values, seed=1))


def test_families_of_one_comparison_are_holms() -> None:
    p = [0.03, 0.001, 0.4, 0.02]
    found = over_families([[value] for value in p])
    np.testing.assert_allclose(np.concatenate(found), holm(p))


def test_a_family_keeps_its_share_until_all_of_it_is_rejected() -> None:
    some, whole = over_families([[0.001, 0.5], [0.04]])
    assert some[0] == pytest.approx(0.002)
    assert whole == pytest.approx([0.08])
    every, other = over_families([[0.001, 0.02], [0.04]])
    assert every == pytest.approx([0.002, 0.04])
    assert other == pytest.approx([0.04])


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[np.inf], [1.0]], [[1.0]], [[np.nan], [1.0]]])
def test_wrong_values_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        paired(wrong)
