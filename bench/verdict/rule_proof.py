# SPDX-License-Identifier: Apache-2.0
"""What each rule prevents: simulated experiments of known truth, judged with the rule and without.

A verdict is wrong if it says the opposite of what is true: a change where nothing changed, or
`unchanged` (or the other direction) where something did.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from bench.verdict import families
from bench.verdict.families import Family
from bench.verdict.scenarios import Scenario
from bench.verdict.scenarios import draw as drawn
from bench.verdict.seen import experiment
from numpy.random import Generator
from scipy.signal import lfilter

from tare.samples.model import Conduct, Experiment, Run
from tare.verdict import judge, rules

SEED = 20261125
ALARMS = ("slower", "faster", "shape-changed")
PLAIN = Family(conditions=1, blocks=8)
Draw = Callable[[Generator], Experiment]


@dataclass(frozen=True)
class Trap:
    """Experiments that go wrong in one way, and the rule (the name of its reason) against it."""

    rule: str
    what: str
    draw: Draw
    effect: float = 0.0
    """The true one, as a share of the baseline."""

    def is_wrong(self, word: str) -> bool:
        """Whether a verdict says the opposite of what is true."""
        if not self.effect:
            return word in ALARMS
        return word in ("unchanged", "faster" if self.effect > 0 else "slower")


@dataclass(frozen=True)
class Prevented:
    """Shares of experiments in per cent."""

    trap: Trap
    wrong: float
    wrong_without: float
    lost: float
    """Of undisturbed experiments with a true effect of 5 %, those found without the rule alone."""


def _changed(of: Experiment, change: Callable[[Run], Run | None]) -> Experiment:
    runs = (change(run) for run in of.runs)
    return replace(of, runs=tuple(run for run in runs if run is not None))


def _scaled(run: Run, factor: float) -> Run:
    return replace(
        run,
        summaries={name: value * factor for name, value in run.summaries.items()},
        quantiles={q: value * factor for q, value in run.quantiles.items()},
    )


def _first_is_slower(generator: Generator) -> Experiment:
    """Conditions in the same order in every block; what comes first meets a cold machine."""
    of = families.draw(Family(conditions=2, blocks=8), generator)
    order = {"c2": 0.0, families.BASELINE: 0.08, "c1": 0.0}
    moved = _changed(of, lambda run: _scaled(run, 1 + order[run.condition]))
    return replace(moved, control="c2")


def _few_blocks(generator: Generator) -> Experiment:
    return families.draw(replace(PLAIN, blocks=3, effect=0.05), generator)


def _without_slowest(count: int, *, recorded: bool) -> Draw:
    """The runs that are slowest by chance crash, as those short of memory do."""

    def draw(generator: Generator) -> Experiment:
        of = families.draw(replace(PLAIN, blocks=16, effect=0.02, unequal=True), generator)
        mine = [run for run in of.runs if run.condition != of.baseline]
        slowest = sorted(mine, key=lambda run: -run.summaries["p50"])[:count]
        lost = {run.run for run in slowest}

        def crashed(run: Run) -> Run | None:
            if run.run not in lost:
                return run
            return replace(run, valid=False, reason="crashed") if recorded else None

        return _changed(of, crashed)

    return draw


def _stalled(generator: Generator) -> Experiment:
    """Another program has the core of every run for half of the time."""
    of = families.draw(PLAIN, generator).asked(primary="p99")
    return _changed(of, lambda run: replace(run, disturbed=True))


def _clocks(generator: Generator) -> Experiment:
    """A span begins on one host and ends on another, whose clock is late by 5 % of it."""
    of = families.draw(PLAIN, generator)
    error = 0.1 * 1e6

    def skewed(run: Run) -> Run:
        late = 1.05 if run.condition != of.baseline else 1.0
        return replace(_scaled(run, late), conduct=Conduct(clock_error_ns=error))

    return _changed(of, skewed)


def _load(generator: Generator) -> Experiment:
    """A fifth fewer requests arrive at a span, so each waits for fewer others."""
    of = families.draw(PLAIN, generator)

    def relieved(run: Run) -> Run:
        if run.condition == of.baseline:
            return replace(run, conduct=Conduct(arrivals=100.0, others=1.0))
        return replace(_scaled(run, 0.9), conduct=Conduct(arrivals=80.0, others=0.6))

    return _changed(of, relieved)


def _bursty(generator: Generator) -> Experiment:
    """Requests are distributed alike, but those of one condition resemble their neighbours: of a
    thousand, about five are independent."""
    runs = []
    for correlation in (0.0, 0.99):
        noise = generator.normal(0, 0.1, (8, 1_000))
        noise[:, 1:] *= np.sqrt(1 - correlation**2)
        log = lfilter([1.0], [1.0, -correlation], noise, axis=-1)
        runs.append(list(1e6 * np.exp(log + generator.normal(0, 0.02, (8, 1)))))
    return experiment(runs, "blocked", primary="p99", with_distances=False)


def _constant(generator: Generator) -> Experiment:
    """Of one value alone no step is known."""
    runs = [
        [np.round(level * generator.normal(1, 0.01, 1_000)) * 1e6 for _ in range(8)]
        for level in (3.0, 3.3)
    ]
    return experiment(runs, "blocked", with_distances=False)


def _long_warm_up(generator: Generator) -> Experiment:
    """One condition is slower for more than half of each run and is then as fast as the other."""
    runs = []
    for extra in (0.0, 0.15):
        of_condition = []
        for _ in range(8):
            log = generator.normal(0, 0.005) + generator.normal(0, 0.1, 1_000)
            log[:560] += np.log1p(extra)
            of_condition.append(1e6 * np.exp(log))
        runs.append(of_condition)
    return experiment(runs, "blocked", with_distances=False)


def traps() -> list[Trap]:
    """One or more for each rule that forbids verdicts."""
    most_crash = _without_slowest(11, recorded=True)
    half_crash, half_lost = (_without_slowest(9, recorded=known) for known in (True, False))
    return [
        Trap("lost", "the slowest 11 of 16 runs of a condition crash, +2 %", most_crash, 0.02),
        Trap("control", "whatever runs first in a block is slower by 8 %", _first_is_slower),
        Trap("stalled", "p99; another program has the core half of the time", _stalled),
        Trap("too_few_runs", "three blocks, +5 %", _few_blocks, 0.05),
        Trap("too_coarse", "whole ms of 3 ms that scatter by 1 %, +10 %", _constant, 0.1),
        Trap("by_clock", "a clock is late by 5 %, known to 10 %", _clocks),
        Trap("by_load", "a fifth fewer requests arrive at a span", _load),
        Trap("biased", "the slowest 9 of 16 runs of a condition crash, +2 %", half_crash, 0.02),
        Trap("biased", "the slowest 9 of 16 runs of a condition are absent, +2 %", half_lost, 0.02),
        Trap("thin_tail", "p99; requests of one condition are correlated by 0.99", _bursty),
        Trap("flipped", "one condition warms up for 560 of 1,000 requests", _long_warm_up),
    ]


@contextmanager
def without(rule: str) -> Iterator[None]:
    """Verdicts as if there were no such rule. Raises ValueError if there is none."""
    every = rules.RULES
    rules.RULES = tuple(one for one in every if one.reason.__name__ != rule)
    try:
        if len(rules.RULES) == len(every):
            raise ValueError(f"no rule has the reason '{rule}'")
        yield
    finally:
        rules.RULES = every


def prevented(task: tuple[Trap, int]) -> Prevented:
    """What one rule does to so many experiments of its trap, and to as many undisturbed ones."""
    trap, repetitions = task
    generators = [np.random.default_rng([SEED, n, *trap.what.encode()]) for n in range(repetitions)]
    trapped = [trap.draw(generator) for generator in generators]
    usual = Scenario("blocked")
    undisturbed = []
    for generator in generators:
        latencies = drawn(usual, 8, generator)
        latencies[1] *= 1.05
        undisturbed.append(experiment(latencies, "blocked", with_distances=False))
    with_rule, kept = _words(trapped), _words(undisturbed)
    with without(trap.rule):
        without_rule, found = _words(trapped), _words(undisturbed)
    pairs = zip(found, kept, strict=True)
    lost = [word == "slower" and before != "slower" for word, before in pairs]
    share = partial(_share, repetitions)
    return Prevented(
        trap,
        share(map(trap.is_wrong, with_rule)),
        share(map(trap.is_wrong, without_rule)),
        share(lost),
    )


def _words(experiments: Sequence[Experiment]) -> list[str]:
    return [judge(one).comparisons[0].verdict for one in experiments]


def _share(of: int, hits: Iterator[bool] | list[bool]) -> float:
    return 100 * sum(hits) / of


def table(found: Sequence[Prevented], repetitions: int) -> str:
    """The rules, worst trap first within each, as Markdown."""
    lines = [
        f"{repetitions} simulated experiments a row (`bench/verdict/rule_proof.py`), in per cent."
        " A verdict is wrong if it says the opposite of what is true. The last column is the power"
        " that the rule costs: of undisturbed experiments with +5 %, those found only without it.",
        "",
        "| rule (its reason) | simulated | wrong with it | wrong without it | power |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| `{one.trap.rule}` | {one.trap.what} | {one.wrong:.0f} | {one.wrong_without:.0f} |"
        f" {one.lost:.0f} |"
        for one in found
    ]
    return "\n".join(lines)


def measured(repetitions: int) -> list[Prevented]:
    """All traps, one after the other: a rule is left out for the whole process."""
    return [prevented((trap, repetitions)) for trap in traps()]
