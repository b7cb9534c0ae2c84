# SPDX-License-Identifier: Apache-2.0
"""Statistics of all pairs against SciPy, and where SciPy has another or none, their definitions."""

from collections.abc import Callable, Sequence
from itertools import combinations
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tare.stats.arrays import Array
from tare.stats.distances import KINDS, Pairs, between


def _ad(x: Array, y: Array) -> float:
    with catch_warnings():
        simplefilter("ignore")  # its p-value is at the end of a table
        return float(stats.anderson_ksamp([x, y], variant="midrank").statistic)


def _cvm(x: Array, y: Array) -> float:
    pooled = np.sort(np.concatenate([x, y]))
    apart = _share(x, pooled) - _share(y, pooled)
    return float(x.size * y.size / pooled.size**2 * (apart**2).sum())


def _share(x: Array, at: Array) -> Array:
    return np.searchsorted(np.sort(x), at, side="right") / x.size


LITERAL: dict[str, Callable[[Array, Array], float]] = {
    "ks": lambda x, y: float(stats.ks_2samp(x, y, method="asymp").statistic),
    "ad": _ad,
    "cvm": _cvm,
    "w1": lambda x, y: float(stats.wasserstein_distance(np.log(x), np.log(y))),
}


def _agrees(runs: Sequence[Array], found: dict[str, Array]) -> None:
    for kind, matrix in found.items():
        assert (matrix == matrix.T).all()
        assert not matrix.diagonal().any()
        for i, j in combinations(range(len(runs)), 2):
            expected = LITERAL[kind](runs[i], runs[j])
            assert matrix[i, j] == pytest.approx(expected, rel=1e-10, abs=1e-12), (kind, i, j)


@pytest.mark.parametrize("values", [3, 40, 10_000_000])
def test_pairs_agree_with_scipy(values: int) -> None:
    """With many ties, some and hardly any."""
    generator = np.random.default_rng(values)
    runs = [
        generator.integers(1 + run, 1 + values, int(generator.integers(5, 500))).astype(float)
        for run in range(2 if values == 3 else 6)
    ]
    _agrees(runs, between(runs, [*KINDS]))


@given(st.lists(st.lists(st.integers(1, 9), min_size=2, max_size=9), min_size=2, max_size=4))
def test_few_values_agree_too(lists: list[list[int]]) -> None:
    runs = [np.array(values, dtype=np.float64) for values in lists]
    found = between(runs, ["ks", "cvm", "w1"])
    if not any({*x} == {*y} and len({*x}) == 1 for x, y in combinations(lists, 2)):
        found |= between(runs)  # of one value only SciPy has no statistic
    _agrees(runs, found)


def test_cramer_von_mises_is_scipys_without_ties() -> None:
    generator = np.random.default_rng(5)
    x, y = generator.normal(9, 1, 70), generator.normal(9.2, 1, 40)
    expected = stats.cramervonmises_2samp(x, y).statistic
    assert between([x, y], ["cvm"])["cvm"][0, 1] == pytest.approx(expected)


def test_runs_that_are_equal() -> None:
    """What Anderson and Darling's statistic has for them is the thesis's row of its baseline."""
    run = np.random.default_rng(3).lognormal(0, 0.3, 10_000)
    found = between([run, run], [*KINDS])
    assert {kind: round(matrix[0, 1], 2) for kind, matrix in found.items()} == {
        "ks": 0, "ad": -1.31, "cvm": 0, "w1": 0
    }  # fmt: skip
    flat = between([[7.0] * 10_000] * 2, [*KINDS])
    assert round(flat["ad"][0, 1], 2) == -1.31


def test_pieces_of_a_stream_are_its_whole() -> None:
    generator = np.random.default_rng(8)
    runs = [generator.integers(1, 90, 300).astype(float) for _ in range(4)]
    values = np.unique(np.concatenate(runs))
    pairs = Pairs([300] * 4, [*KINDS])
    for piece in np.split(values, [1, 7, 50]):
        table = np.array([[(run == value).sum() for run in runs] for value in piece])
        row, run = np.nonzero(table)
        pairs.add(piece[row], run, table[row, run])
    pairs.add(values[:0], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    _agrees(runs, {kind: pairs.matrix(kind) for kind in KINDS})


def test_a_value_may_be_said_in_parts() -> None:
    values, runs, counts = [3, 3, 5, 5, 5], [0, 1, 1, 0, 1], [4, 2, 1, 1, 3]
    parts, whole = Pairs([5, 6], [*KINDS]), between([[3] * 4 + [5], [3] * 2 + [5] * 4], [*KINDS])
    parts.add(*map(np.array, (values, runs, counts)))
    for kind, matrix in parts.matrices().items():
        assert (matrix == whole[kind]).all()


def test_what_is_said_of_no_run() -> None:
    pairs = Pairs([5, 6])
    with pytest.raises(ValueError, match="expected runs from 0 to 1"):
        pairs.add(np.array([3.0]), np.array([2]), np.array([1]))
    with pytest.raises(ValueError, match="2 values, 1 runs, 1 counts"):
        pairs.add(np.array([3.0, 4.0]), np.array([1]), np.array([1]))


def test_too_few_values_have_no_standard_deviation() -> None:
    found = between([[1.0], [2.0]])
    assert found["ks"][0, 1] == 1
    assert np.isnan(found["ad"][0, 1])


@pytest.mark.parametrize("runs", [[[], [1.0]], [[np.nan], [1.0]], [[np.inf], [1.0]], []])
def test_what_has_no_distance(runs: Sequence[npt.ArrayLike]) -> None:
    with pytest.raises(ValueError, match="expected"):
        between(runs)
    with pytest.raises(ValueError, match="expected a value in every run"):
        Pairs([1, 0])


def test_a_logarithm_needs_positive_values() -> None:
    with pytest.raises(ValueError, match="expected positive values, found 0"):
        between([[0.0, 1.0], [1.0]], ["w1"])
