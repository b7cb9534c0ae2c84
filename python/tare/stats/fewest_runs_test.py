# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.stats.fewest_runs import fewest_runs
from tare.stats.permutation import label_permutation, sign_flip


@pytest.mark.parametrize(
    ("alpha", "blocks"), [(0.2, 6), (0.05, 6), (0.03125, 6), (0.03, 7), (0.01, 8), (0.001, 11)]
)
def test_so_many_blocks_reach_alpha_and_one_less_does_not(alpha: float, blocks: int) -> None:
    assert fewest_runs(alpha, paired=True) == blocks
    clearest = [1.0 + 0.01 * block for block in range(blocks)]
    assert sign_flip(clearest) <= alpha
    assert blocks == 6 or sign_flip(clearest[1:]) > alpha


@pytest.mark.parametrize(("alpha", "runs"), [(0.05, 5), (0.001, 7)])
def test_unpaired_runs_need_fewer(alpha: float, runs: int) -> None:
    assert fewest_runs(alpha, paired=False) == runs
    first, second = [0.01 * run for run in range(runs)], [1 + 0.01 * run for run in range(runs)]
    assert label_permutation(first, second) <= alpha


@pytest.mark.parametrize("alpha", [0.0, 1.0, float("nan")])
def test_no_number_of_runs_reaches_an_alpha_that_is_none(alpha: float) -> None:
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        fewest_runs(alpha, paired=True)
