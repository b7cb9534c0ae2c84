# SPDX-License-Identifier: Apache-2.0
"""Tare and its peers on the same simulated experiments, seeds fixed."""

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from multiprocessing import get_context

import numpy as np
from bench.verdict import peers, simulated_experiment
from bench.verdict.scenarios import SCENARIOS, Scenario, draw

from tare.stats.arrays import Array
from tare.verdict import judge

SEED = 20221014
CHUNK = 100
TARE = "Tare"
ALARMS = ("slower", "faster", "shape-changed")


@dataclass(frozen=True)
class Task:
    """Repetitions `first` to `last`, exclusive, of one cell of the table."""

    scenario: Scenario
    runs: int
    effects: Sequence[float]
    """How much slower the condition is; the first is 0."""
    first: int
    last: int


@dataclass(frozen=True)
class Outcome:
    """What was said of the repetitions of a cell, in the order of `effects`."""

    scenario: Scenario
    runs: int
    effects: Sequence[float]
    verdicts: dict[str, Array]
    """By method, (repetitions, effects): 1 slower, -1 faster, 0 neither; 2 another alarm."""
    words: tuple[tuple[str, ...], ...]
    """Tare's own, a tuple a repetition."""
    widths: Array
    """(repetitions,): of Tare's 95 % interval where nothing was, as a fraction; NaN for none."""

    def alarms(self, method: str) -> float:
        """The share of experiments without an effect in which there was said to be one."""
        return float(np.mean(self.verdicts[method][:, 0] != 0))

    def found(self, method: str, effect: float) -> float:
        """The share in which an effect was found, on its own side."""
        return float(np.mean(self.verdicts[method][:, self.effects.index(effect)] == 1))


def outcomes(
    scenarios: Sequence[Scenario],
    runs: Sequence[int],
    effects: Sequence[float],
    repetitions: int,
    first: int = 0,
) -> list[Outcome]:
    """Every cell of a table: scenario by number of runs; one line of progress for each.

    Its repetitions are those from `first` on: each has a seed of its own.
    """
    last = first + repetitions
    ends = [*range(first, last, CHUNK), last]
    tasks = [
        Task(scenario, count, effects, begin, end)
        for scenario, count in product(scenarios, runs)
        for begin, end in pairwise(ends)
    ]
    # One thread each: the arrays are small, and there are as many processes as CPUs.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    parts = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for task, part in zip(tasks, pool.map(carried_out, tasks), strict=True):
            parts.append(part)
            if task.last == last:
                print(f"{task.scenario.name}: {task.runs} runs", file=sys.stderr, flush=True)
    found = list(_together(parts))
    if told := peers.absent(found[0].verdicts):
        print(f"not in the table: {told}", file=sys.stderr)
    return found


def carried_out(task: Task) -> Outcome:
    """The verdicts of all methods on a task's experiments."""
    verdicts: list[dict[str, int]] = []
    words: list[str] = []
    widths: list[float] = []
    means: list[tuple[Array, Array]] = []
    place = SCENARIOS.index(task.scenario)
    for repetition in range(task.first, task.last):
        generator = np.random.default_rng([SEED, place, task.runs, repetition])
        drawn = draw(task.scenario, task.runs, generator)
        for effect in task.effects:
            latencies = drawn.copy()
            latencies[1] *= 1 + effect
            experiment = simulated_experiment.experiment(latencies, task.scenario.design)
            comparison = judge(experiment).comparisons[0]
            words.append(comparison.verdict)
            if effect == 0:
                width = simulated_experiment.width(comparison.low, comparison.high)
                widths.append(np.nan if width is None else width)
            verdicts.append({TARE: _as_number(comparison.verdict)})
            verdicts[-1] |= peers.in_process(
                latencies[0],
                latencies[1],
                experiment.distances[simulated_experiment.PLACE].of["ad"],
            )
            means.append((latencies[0].mean(axis=1), latencies[1].mean(axis=1)))
    for name, found in peers.programs(means).items():
        for numbers, verdict in zip(verdicts, found, strict=True):
            numbers[name] = verdict
    shape = (task.last - task.first, len(task.effects))
    return Outcome(
        task.scenario,
        task.runs,
        task.effects,
        {
            name: np.array([numbers[name] for numbers in verdicts]).reshape(shape)
            for name in verdicts[0]
        },
        tuple(tuple(words[at : at + shape[1]]) for at in range(0, len(words), shape[1])),
        np.array(widths),
    )


def _as_number(word: str) -> int:
    return {"slower": 1, "faster": -1, "shape-changed": 2}.get(word, 0)


def _together(parts: Sequence[Outcome]) -> Iterator[Outcome]:
    """Parts of one cell follow each other."""
    cells: dict[tuple[str, int], list[Outcome]] = {}
    for part in parts:
        cells.setdefault((part.scenario.name, part.runs), []).append(part)
    for same in cells.values():
        yield Outcome(
            same[0].scenario,
            same[0].runs,
            same[0].effects,
            {
                name: np.concatenate([part.verdicts[name] for part in same])
                for name in same[0].verdicts
            },
            tuple(words for part in same for words in part.words),
            np.concatenate([part.widths for part in same]),
        )
