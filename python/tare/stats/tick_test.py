# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from tare.stats.tick import tick


def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(values, return_counts=True)


@pytest.mark.parametrize("step", [1_000_000, 15_625_000, 4_000_000, 16_666_667])
@pytest.mark.parametrize("whole", [np.floor, np.round])
def test_the_step_of_a_clock_is_found(step: int, whole: np.ufunc) -> None:
    times = np.random.default_rng(1).lognormal(np.log(35e6), 0.3, 1_000)
    assert tick(*counted(whole(times / step) * step)) == pytest.approx(step)


def test_ticks_that_were_rounded_again_are_near() -> None:
    times = np.random.default_rng(1).lognormal(np.log(40e6), 0.3, 1_000)
    ticks = np.round(times / 15_625_000) * 15_625_000
    assert tick(*counted(np.round(ticks, -5))) == pytest.approx(15_625_000, rel=0.01)


def test_ticks_in_whole_milliseconds_are_near() -> None:
    times = np.random.default_rng(1).lognormal(np.log(35e6), 0.3, 1_000)
    found = tick(*counted(np.floor(np.floor(times / 15_625_000) * 15.625) * 1e6))
    assert found == pytest.approx(15_625_000, rel=0.03)


def test_two_ticks_are_enough() -> None:
    assert tick([15_625_000, 31_250_000], [800, 200]) == 15_625_000


def test_what_is_no_grid_has_no_step() -> None:
    assert tick([1_000_000, 100_000_000], [500, 500]) is None
    assert tick([3_000_000], [1_000]) is None
    exact = np.random.default_rng(1).lognormal(np.log(35e6), 0.3, 1_000).round()
    assert tick(*counted(exact)) is None


def test_a_sparse_tail_does_not_widen_the_step() -> None:
    assert tick([3, 4, 5, 90, 170, 400], [500, 300, 100, 1, 1, 1]) == 1
