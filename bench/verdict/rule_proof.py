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
import numpy.typing as npt
from bench.verdict import families
from bench.verdict.families import Family
from bench.verdict.scenarios import Scenario
from bench.verdict.scenarios import draw as drawn
from bench.verdict.simulated_experiment import experiment
from numpy.random import Generator
from scipy.signal import lfilter

from tare.samples.model import Experiment, LoadStats, Run
from tare.verdict import judge
from tare.verdict.rules import rules

SEED = 20261125
FAILING = 24
ALARMS = ("slower", "faster", "shape-changed")
PLAIN = Family(conditions=1, blocks=8)
Draw = Callable[[Generator], Experiment]


@dataclass(frozen=True)
class Trap:
    """Experiments that go wrong in one way, and the rule (the name of its reason) against it."""

    rule: str
    """Several names, separated by commas, if one rule catches what another lets through."""
    what: str
    draw: Draw
    effect: float = 0.0
    """The true one, as a share of the baseline."""
    unseen: Callable[[Run], Run] = lambda run: run
    """A run as it would be without what the rule is about."""

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


def _slow_runs(slow: npt.NDArray[np.bool_], generator: Generator) -> Experiment:
    """Runs of a condition, slower by 10 % where `slow` says so; of the baseline none is."""
    runs = []
    for by in (np.zeros(slow.size), np.log(1.1) * slow):
        level = generator.normal(by, 0.003)
        runs.append(list(1e6 * np.exp(generator.normal(level, 0.1, (1_000, slow.size)).T)))
    return experiment(runs, "blocked", with_distances=False)


def _few_blocks(generator: Generator) -> Experiment:
    """One run in three is slow, and few blocks meet none by chance."""
    return _slow_runs(generator.random(3) < 1 / 3, generator)


def _slow_crash(generator: Generator) -> Experiment:
    """All slow runs crash, and they are most."""
    slow = generator.permutation(16) < 11
    of = _slow_runs(slow, generator)

    def crashed(run: Run) -> Run:
        if run.condition == of.baseline or not slow[run.block]:
            return run
        return replace(run, valid=False, reason="crashed")

    return _changed(of, crashed)


def _timed_out(generator: Generator) -> Experiment:
    """The slowest 0.6 % of the requests of one condition fail."""
    runs = [list(1e6 * np.exp(generator.normal(0, 0.3, (8, 4_000)))) for _ in range(2)]
    runs[1] = [run[run < np.sort(run)[-FAILING]] for run in runs[1]]
    of = experiment(runs, "blocked", primary="p99", with_distances=False)

    def failing(run: Run) -> Run:
        if run.condition == of.baseline:
            return run
        return replace(run, errors=FAILING, requests=run.requests + FAILING)

    return _changed(of, failing)


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
    """Another program has the core half of the time, and stalls one condition more often."""
    of = families.draw(PLAIN, generator).asked(primary="p99")
    more = {of.baseline: 5.0}
    return _changed(
        of, lambda run: replace(_scaled(run, more.get(run.condition, 10.0)), disturbed=True)
    )


def _clocks(generator: Generator) -> Experiment:
    """A span begins on one host and ends on another, whose clock is late by 5 % of it."""
    of = families.draw(PLAIN, generator)
    error = 0.1 * 1e6

    def skewed(run: Run) -> Run:
        late = 1.05 if run.condition != of.baseline else 1.0
        return replace(_scaled(run, late), load_stats=LoadStats(clock_error_ns=error))

    return _changed(of, skewed)


def _load(generator: Generator) -> Experiment:
    """A fifth fewer requests arrive at a span, so each waits for fewer others."""
    of = families.draw(PLAIN, generator)

    def relieved(run: Run) -> Run:
        if run.condition == of.baseline:
            return replace(run, load_stats=LoadStats(arrivals=100.0, others=1.0))
        return replace(_scaled(run, 0.9), load_stats=LoadStats(arrivals=80.0, others=0.6))

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


def _slow_beginning(generator: Generator) -> Experiment:
    """One condition is slower by half for 40 % of each run and is then as fast as the other."""
    runs = []
    for extra in (0.0, 0.5):
        log = generator.normal(0, 0.005, (8, 1)) + generator.normal(0, 0.1, (8, 1_000))
        log[:, :400] += np.log1p(extra)
        runs.append(list(1e6 * np.exp(log)))
    return experiment(runs, "blocked", with_distances=False)


def traps() -> list[Trap]:
    """One or more for each rule that forbids verdicts."""
    half_crash, half_lost = (_without_slowest(9, recorded=known) for known in (True, False))
    return [
        Trap(
            "lost, too_few_runs, biased",
            "the 11 of 16 runs that are slower by 10 % crash",
            _slow_crash,
            0.07,
        ),
        Trap("control", "whatever runs first in a block is slower by 8 %", _first_is_slower),
        Trap(
            "stalled",
            "p99; another program has the core half of the time",
            _stalled,
            unseen=lambda run: replace(run, disturbed=False),
        ),
        Trap("too_few_runs", "three blocks; one run in three is slower by 10 %", _few_blocks, 0.03),
        Trap("too_coarse", "whole ms of 3 ms that scatter by 1 %, +10 %", _constant, 0.1),
        Trap("by_clock", "a clock is late by 5 %, known to 10 %", _clocks),
        Trap("by_load", "a fifth fewer requests arrive at a span", _load),
        Trap("biased", "the slowest 9 of 16 runs of a condition crash, +2 %", half_crash, 0.02),
        Trap("biased", "the slowest 9 of 16 runs of a condition are absent, +2 %", half_lost, 0.02),
        Trap("biased", "p99; the slowest 0.6 % of a condition's requests fail", _timed_out),
        Trap("thin_tail", "p99; requests of one condition are correlated by 0.99", _bursty),
        Trap("flipped", "the first 40 % of each run are slower by half", _slow_beginning, 0.2),
    ]


@contextmanager
def without(names: str) -> Iterator[None]:
    """Verdicts as if there were no such rules. Raises ValueError if there are none."""
    every, named = rules.RULES, names.split(", ")
    rules.RULES = tuple(rule for rule in every if rule.reason.__name__ not in named)
    try:
        if len(rules.RULES) != len(every) - len(named):
            raise ValueError(f"no rules have the reasons '{names}'")
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
        unseen = [_changed(of, trap.unseen) for of in trapped]
        without_rule, found = _words(unseen), _words(undisturbed)
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
    return [judge(drawn).comparisons[0].verdict for drawn in experiments]


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
        f"| `{outcome.trap.rule}` | {outcome.trap.what} | {outcome.wrong:.0f} |"
        f" {outcome.wrong_without:.0f} | {outcome.lost:.0f} |"
        for outcome in found
    ]
    return "\n".join(lines)


def measured(repetitions: int) -> list[Prevented]:
    """All traps, one after the other: a rule is left out for the whole process."""
    return [prevented((trap, repetitions)) for trap in traps()]
