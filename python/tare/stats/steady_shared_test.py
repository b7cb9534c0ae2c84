# SPDX-License-Identifier: Apache-2.0
"""A machine that changes its speed, below services that do and do not warm up."""

from collections import Counter

import numpy as np
import pytest

from tare.stats.arrays import Array
from tare.stats.steady import classify
from tare.stats.steady_shared import CELLS, cells, course, of_machine
from tare.stats.steady_test import BATCHES, EDGES, noise, steps

FLAT = np.zeros(BATCHES)
DECAY = 0.7 * np.exp(-np.arange(BATCHES) / 60)
STEP = steps((150, 1.5), (850, 1))
SLOWDOWN = steps((350, 1), (650, 1.2))


def machine(seed: int) -> Array:
    """Turns of about a third of a run, 25 % slower and not."""
    generator = np.random.default_rng(seed)
    turns = [int(length) + 1 for length in generator.exponential(300, BATCHES)]
    slow = generator.permuted([0.0, np.log(1.25)])
    return np.repeat(np.resize(slow, BATCHES), turns)[:BATCHES]


def kinds(courses: list[Array], blocks: int, of_one_machine: bool = True) -> list[Counter[str]]:
    """The classes of the runs of each condition, in blocks of one machine's courses."""
    runs = [
        [
            11 + machine(block) + service + 0.04 * noise(100 * block + number, 0.5)
            for number, service in enumerate(courses)
        ]
        for block in range(blocks)
    ]
    moves = of_machine([[course(run, EDGES) for run in block] for block in runs])
    found: list[Counter[str]] = [Counter() for _ in courses]
    for block, move in zip(runs, moves, strict=True):
        for number, run in enumerate(block):
            steadiness = classify(run - of_one_machine * move[cells(EDGES)], EDGES)
            assert steadiness is not None
            found[number][steadiness.kind] += 1
    return found


def test_what_the_machine_does_is_no_run_s_doing() -> None:
    alone = sum(kinds([FLAT] * 3, 10, of_one_machine=False), Counter())
    assert alone["flat"] <= 20
    assert sum(kinds([FLAT] * 3, 10), Counter())["flat"] >= 29


@pytest.mark.parametrize(
    ("courses", "expected"),
    [
        ([DECAY, DECAY, DECAY], ["warm-up", "warm-up", "warm-up"]),
        ([STEP, STEP], ["warm-up", "warm-up"]),
        ([FLAT, FLAT, DECAY], ["flat", "flat", "warm-up"]),
        ([FLAT, FLAT, SLOWDOWN], ["flat", "flat", "slowdown"]),
    ],
)
def test_what_services_do_in_every_block_stays_theirs(
    courses: list[Array], expected: list[str]
) -> None:
    for found, kind in zip(kinds(courses, 10), expected, strict=True):
        assert found[kind] >= 8


def test_the_machine_s_course_is_what_differs_between_blocks() -> None:
    quiet, slow = np.zeros(CELLS), np.repeat([0.2, 0.0], CELLS // 2)
    warm = np.repeat([0.5, 0.0], [20, CELLS - 20])
    blocks = [[quiet + warm] * 2 for _ in range(9)] + [[slow + warm] * 2]
    moves = of_machine(blocks)
    np.testing.assert_allclose(moves[:9], 0, atol=0.03)
    np.testing.assert_allclose(moves[9], slow, atol=0.03)


def test_one_block_and_lonely_runs_have_no_machine_s_course() -> None:
    series = [course(machine(1), EDGES)] * 2
    np.testing.assert_array_equal(of_machine([series]), np.zeros((1, CELLS)))
    np.testing.assert_array_equal(of_machine([series[:1], []]), np.zeros((2, CELLS)))


def test_a_course_is_of_medians_about_the_second_half() -> None:
    found = course(STEP + 3, EDGES)
    assert found.shape == (CELLS,)
    np.testing.assert_allclose(found[:30], np.log(1.5))
    np.testing.assert_allclose(found[30:], 0)
    there = np.r_[0:300, 500:BATCHES]
    np.testing.assert_allclose(course(STEP[there], [*EDGES[there], EDGES[-1]]), found)
