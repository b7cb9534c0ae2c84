# SPDX-License-Identifier: Apache-2.0
"""The peers' formulas beside the ones that they stand for, and their programs where they are."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from bench.verdict import peers
from bench.verdict.scenarios import Scenario, draw
from scipy import stats

from tare.stats.arrays import Array
from tare.stats.best_fit import best_fit
from tare.stats.distances import between

Many = Callable[[Sequence[tuple[Array, Array]]], list[int]]


def sides(effect: float, seed: int = 1, runs: int = 6) -> tuple[Array, Array]:
    drawn = draw(Scenario("", run=0.005, drift=0.0), runs, np.random.default_rng(seed))
    return drawn[0], drawn[1] * (1 + effect)


def judged(effect: float) -> dict[str, int]:
    first, second = sides(effect)
    return peers.in_process(first, second, between([*first, *second])["ad"])


def test_a_great_difference_is_found_by_all_and_on_its_side() -> None:
    assert set(judged(0.5).values()) == {1}
    assert set(judged(-0.4).values()) == {-1}


def test_every_method_is_described() -> None:
    assert {*judged(0.1), *peers.TOOLS} == set(peers.ABOUT)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_fit_run_is_the_published_one(seed: int) -> None:
    first, second = sides(0.01, seed, runs=4)
    found = best_fit([*first], [*second])
    assert found is not None
    base, changed = peers.best_fit_runs(first, second, between([*first, *second])["ad"])
    assert (base == first[found.first]).all()
    assert (changed == second[found.second]).all()


def test_welch_is_of_runs() -> None:
    first, second = sides(0.01)
    p = stats.ttest_ind(second.mean(axis=1), first.mean(axis=1), equal_var=False).pvalue
    assert (judged(0.01)["hyperfine"] != 0) == (p < peers.LEVEL)


def test_criterion_holds_its_level_on_independent_requests_of_one_process() -> None:
    generator = np.random.default_rng(1)
    runs = 1e6 * np.exp(0.1 * generator.normal(size=(400, 2, 1_000)))
    alarms = sum(peers.criterion(base, changed) != 0 for base, changed in runs)
    # Its noise threshold of 1 % takes most of what 5 % would be.
    assert alarms <= 400 * 0.05
    assert all(peers.criterion(base, 1.05 * changed) == 1 for base, changed in runs[:20])


@pytest.mark.integration
@pytest.mark.parametrize("name", peers.TOOLS)
def test_a_program_judges_many_experiments_at_once(name: str) -> None:
    program, many = peers.TOOLS[name]
    if not program.exists():
        pytest.skip(f"{program.name} is not there: setup/install-peers {name.lower()}")
    generator = np.random.default_rng(1)
    base = 1e6 * np.exp(0.01 * generator.normal(size=(4, 2, 10)))
    pairs = [(base[0, 0], base[0, 1])]
    pairs += [(base[1, 0], 1.5 * base[1, 1]), (base[2, 0], 0.6 * base[2, 1])]
    assert many(pairs) == [0, 1, -1]
