# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the hard cases, held against their bars."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from bench.cases import Case
from bench.hard import hard_cases
from bench.hard.hard_cases import HardCase
from bench.verdict import families, scenarios
from bench.verdict.families import Family
from bench.verdict.scenarios import Design, Scenario
from bench.verdict.simulated_experiment import experiment as simulated_experiment

from tare.samples.model import Experiment
from tare.stats.multiplicity import holm
from tare.verdict import Comparison, judge

Task = TypeVar("Task")
Result = TypeVar("Result")
SEED = 20261124
TARE, ALARMS = "Tare", ("slower", "faster", "shape-changed")
AGAIN = 4
"""How many times as many experiments the second drawing of a family has."""
LEVEL = 5.0
"""Per cent of experiments without an effect that may raise an alarm."""
FAMILIES = tuple(
    Family(conditions, spans, blocks, effect, skewed, unequal)
    for conditions, spans in ((2, 1), (3, 1), (9, 1), (1, 4), (1, 12), (2, 4))
    for blocks in (6, 8)
    for skewed, unequal in ((False, False), (True, False), (False, True))
    for effect in (0.0, 0.05, 0.3)
)
ALL_SLOWER = Family(3, blocks=6, effect=0.3, everywhere=True)


@dataclass(frozen=True)
class Pilot:
    """A design whose mde is held against new experiments."""

    design: Design
    runs: int

    @property
    def name(self) -> str:
        """For the note."""
        return f"{self.runs} runs {self.design}"

    def experiment(self, effect: float, generator: np.random.Generator) -> Experiment:
        """One experiment on a machine that does not drift."""
        scenario = Scenario("", self.design, drift=0.0)
        latencies = scenarios.draw(scenario, self.runs, generator)[:2]
        latencies[1] *= 1 + effect
        return simulated_experiment(latencies, self.design, with_distances=False)


PILOTS = (
    *(Pilot("blocked", runs) for runs in (6, 8, 10)),
    *(Pilot("unblocked", runs) for runs in (5, 8, 10)),
)
FOUND = 80.0
"""Per cent of experiments in which the mde is to be found."""


@dataclass(frozen=True)
class CaseRates:
    """What was found in some experiments of one case: shares in per cent."""

    name: str
    words: tuple[str, ...]
    covered: float
    """Of those with an interval, in which it holds the true effect."""

    def share(self, *words: str) -> float:
        """Of the experiments with one of these verdicts."""
        return 100 * sum(word in words for word in self.words) / len(self.words)


@dataclass(frozen=True)
class FamilyRates:
    """The same of one family: shares in per cent."""

    family: Family
    repetitions: int
    alarms: float
    """With a false alarm in any comparison."""
    found: float
    """With all true changes found."""
    found_by_holm: float


def cases(repetitions: int) -> list[Case]:
    """All bars' cases, of `repetitions` experiments each."""
    # One thread each: the arrays are small, and there are as many processes as CPUs.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        parts = (
            hard_cases.unequal_lengths,
            hard_cases.tails,
            hard_cases.rounded,
            hard_cases.tail_lengths,
        )
        groups = [
            _each(pool, rates_of_case, [(case, repetitions) for case in part()], part.__name__)
            for part in parts
        ]
        found = _rates_of_families(pool, (*FAMILIES, ALL_SLOWER), repetitions)
        pilots = _each(pool, found_at_mde, [(pilot, repetitions) for pilot in PILOTS], "pilots")
    lengths, tails, rounded, tail_lengths = groups
    return [
        *_lengths(lengths, repetitions),
        *_tails(tails, repetitions),
        *_rounded(rounded, repetitions),
        *_tail_lengths(tail_lengths, repetitions),
        *_families(found),
        _mde(pilots),
    ]


def _each(
    pool: Executor, measure: Callable[[Task], Result], tasks: Sequence[Task], name: str
) -> list[Result]:
    """The results of all tasks; their number so far is on standard error, as it takes hours."""
    found = []
    for result in pool.map(measure, tasks):
        found.append(result)
        print(f"\r{name}: {len(found)} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def rates_of_case(task: tuple[HardCase, int]) -> CaseRates:
    """The verdicts on so many experiments of one case."""
    case, repetitions = task
    words, covered = [], []
    for repetition in range(repetitions):
        found = judge(case.draw(_generator(case.name, repetition))).comparisons[0]
        words.append(found.verdict)
        if found.low is not None and found.high is not None:
            covered.append(found.low <= case.effect <= found.high)
    return CaseRates(case.name, tuple(words), 100 * float(np.mean(covered)) if covered else 0.0)


def _rates_of_families(
    pool: Executor, every: Sequence[Family], repetitions: int
) -> list[FamilyRates]:
    """All families. Of a hundred that hold the level some are above it and its error by chance:
    those are drawn again, `AGAIN` times as often."""
    first = range(repetitions)
    found = _each(pool, rates_of_family, [(family, first) for family in every], "families")
    again = range(repetitions, (1 + AGAIN) * repetitions)
    doubted = [result.family for result in found if result.alarms > LEVEL + _error(repetitions)]
    drawn = _each(pool, rates_of_family, [(family, again) for family in doubted], "families again")
    sure = {result.family: result for result in drawn}
    return [sure.get(result.family, result) for result in found]


def rates_of_family(task: tuple[Family, range]) -> FamilyRates:
    """The same of one family, and what Holm's procedure finds by the same p-values."""
    family, repetitions = task
    alarms, found, by_holm = [], [], []
    for repetition in repetitions:
        experiment = families.draw(family, _generator(repr(family), repetition))
        primary = [
            comparison
            for comparison in judge(experiment).comparisons
            if comparison.role == "primary"
        ]
        others = [
            comparison
            for comparison in primary
            if (comparison.condition, comparison.span) not in family.changed
        ]
        alarms.append(any(comparison.verdict in ALARMS for comparison in others))
        changed = [comparison for comparison in primary if comparison not in others]
        found.append(
            bool(changed) and all(comparison.verdict == "slower" for comparison in changed)
        )
        adjusted = holm(
            [1.0 if comparison.p is None else comparison.p for comparison in primary]
        ).tolist()
        by_holm.append(
            bool(changed)
            and all(
                p <= LEVEL / 100 and _beyond(comparison)
                for p, comparison in zip(adjusted, primary, strict=True)
                if comparison in changed
            )
        )
    shares = (100 * float(np.mean(hits)) for hits in (alarms, found, by_holm))
    return FamilyRates(family, len(repetitions), *shares)


def found_at_mde(task: tuple[Pilot, int]) -> tuple[str, float]:
    """In how many per cent of new experiments an effect as large as a pilot's mde is found.

    One pilot without an effect for each new experiment.
    """
    pilot, repetitions = task
    found = []
    for repetition in range(repetitions):
        generator = _generator(pilot.name, repetition)
        mde = judge(pilot.experiment(0.0, generator)).comparisons[0].mde
        if mde is not None:
            new = judge(pilot.experiment(mde, generator)).comparisons[0]
            found.append(new.verdict == "slower")
    return pilot.name, 100 * float(np.mean(found)) if found else 0.0


def _beyond(comparison: Comparison) -> bool:
    """Whether its interval is that of a slower condition."""
    return (
        comparison.low is not None
        and comparison.high is not None
        and comparison.low > 0
        and comparison.high > comparison.budget
    )


def _generator(name: str, repetition: int) -> np.random.Generator:
    return np.random.default_rng([SEED, repetition, *name.encode()])


def _error(repetitions: int) -> float:
    """Two standard errors of a share of 5 %, in per cent."""
    return 2 * sqrt(LEVEL * (100 - LEVEL) / repetitions)


def _level(name: str, found: Sequence[tuple[str, float]], repetitions: int) -> Case:
    """The most alarms of some cases, beside what a level of 5 % allows."""
    worst, alarms = max(found, key=lambda case: case[1])
    note = f"worst of {len(found)} cases, {repetitions:,} experiments each: {worst}"
    bound = LEVEL + _error(repetitions)
    return Case(name, TARE, "5 % and two standard errors", "%", [alarms], [bound], note)


def _least(name: str, found: Sequence[tuple[str, float]], peer: str = "") -> Case:
    worst, share = min(found, key=lambda case: case[1])
    return Case(name, TARE, peer, "%", [share], note=f"least of {len(found)} cases: {worst}")


def _alarms(found: Sequence[CaseRates]) -> list[tuple[str, float]]:
    return [(case.name, case.share(*ALARMS)) for case in found]


def _slower(found: Sequence[CaseRates]) -> list[tuple[str, float]]:
    return [(case.name, case.share("slower")) for case in found]


def _named(found: Sequence[CaseRates], *parts: str) -> list[CaseRates]:
    return [case for case in found if all(part in case.name for part in parts)]


def _lengths(found: Sequence[CaseRates], repetitions: int) -> Iterator[Case]:
    yield _level("lengths-alarms", _alarms(_named(found, "+0%")), repetitions)
    yield _least("lengths-power", _slower(_named(found, "+10%")))
    yield _least("closed-loop-power", _slower(_named(found, "+100 %")))


def _tails(found: Sequence[CaseRates], repetitions: int) -> Iterator[Case]:
    nothing, thin, more, broad = found
    yield _level("tail-alarms", _alarms([nothing]), repetitions)
    yield Case("tail-2", TARE, "", "%", [thin.share("unchanged")], note=thin.name)
    yield Case("tail-5", TARE, "", "%", [more.share("slower", "shape-changed")], note=more.name)
    yield Case("tail-10", TARE, "", "%", [broad.share("slower", "shape-changed")], note=broad.name)


def _rounded(found: Sequence[CaseRates], repetitions: int) -> Iterator[Case]:
    both, one_side = _named(found, "whole ms (", "%"), _named(found, "one side")
    nothing = [*_named(both, "+0%"), *one_side]
    yield _level("rounded-alarms", _alarms(nothing), repetitions)
    yield _least("rounded-cover", [(case.name, case.covered) for case in both])
    small = _named(both, "+10%")
    worst = max(small, key=lambda case: case.share("unchanged"))
    yield Case("rounded-10", TARE, "", "%", [worst.share("unchanged")], note=worst.name)
    yield _least("rounded-10-power", _slower(_named(small, "scatter 0.3")))
    yield _least("rounded-30-power", _slower(_named(both, "+30%")))


def _tail_lengths(found: Sequence[CaseRates], repetitions: int) -> Iterator[Case]:
    *nothing, slower = found
    yield _level("p99-lengths-alarms", _alarms(nothing), repetitions)
    yield _least("p99-lengths-power", _slower([slower]))


def _families(found: Sequence[FamilyRates]) -> Iterator[Case]:
    for repetitions in sorted({result.repetitions for result in found}):
        alike = [result for result in found if result.repetitions == repetitions]
        alarms = [(repr(result.family), result.alarms) for result in alike]
        yield _level("families-alarms", alarms, repetitions)
    changed = [result for result in found if result.family.effect]
    worst = min(changed, key=lambda result: result.found - result.found_by_holm)
    yield Case(
        "families-power",
        TARE,
        "Holm's procedure",
        "%",
        [worst.found],
        [worst.found_by_holm],
        note=f"where it is least ahead of {len(changed)} cases: {worst.family}",
    )
    clear = [result for result in changed if result.family.everywhere]
    yield _least("three-conditions", [(repr(result.family), result.found) for result in clear])


def _mde(found: Sequence[tuple[str, float]]) -> Case:
    name, share = max(found, key=lambda pilot: abs(pilot[1] - FOUND))
    listed = ", ".join(f"{pilot} {part:.0f} %" for pilot, part in found)
    return Case("mde", TARE, "", "points", [abs(share - FOUND)], note=f"furthest: {name}; {listed}")
