# SPDX-License-Identifier: Apache-2.0
"""Hard cases of known truth: what made verdicts wrong before, one cause at a time.

Eight blocks, runs that scatter by 2 %, requests by 10 % and a budget of 3 % unless a case says
otherwise. Every case of false alarms has one of power on the same kind of data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan

import numpy as np
from bench.verdict import simulated_experiment
from numpy.random import Generator

from tare.samples.model import Experiment
from tare.stats.arrays import Array

BLOCKS = 8
RUN, DRIFT, SCATTER = 0.02, 0.01, 0.1
EXCESS = 0.5
"""By how much the first request of a warm-up is slower."""
MILLISECOND, TICK = 1_000_000, 15_625_000


@dataclass(frozen=True)
class Side:
    """The runs of one condition."""

    requests: int = 1_000
    slower: float = 1.0
    """How many times as long its requests take."""
    warm_up: float = 0.0
    """Requests in which a warm-up falls to a third."""
    tail: tuple[float, float] = (0.0, 1.0)
    """A share of requests, and how many times as long these take."""
    step_ns: int = 0
    """To which times are rounded."""
    down: bool = False
    """Whether they are rounded down, not to the nearest step."""


@dataclass(frozen=True)
class HardCase:
    """How one kind of experiment is drawn, and the effect that is true in it."""

    name: str
    base: Side
    condition: Side
    effect: float = 0.0
    """Of the primary metric, as a share of the baseline; NaN where it has no single number."""
    swapped: bool = False
    """Half of the experiments have the lengths of both sides the other way round."""
    typical_ns: float = 1e6
    scatter: float = SCATTER
    primary: str = "p50"

    def draw(self, generator: Generator) -> Experiment:
        """One experiment, blocked."""
        sides = self.base, self.condition
        if self.swapped and generator.random() < 0.5:
            first, second = sides
            sides = (
                replace(first, requests=second.requests, warm_up=second.warm_up),
                replace(second, requests=first.requests, warm_up=first.warm_up),
            )
        return simulated_experiment.experiment(
            self.latencies(sides, generator),
            "blocked",
            steps=[[side.step_ns] * BLOCKS for side in sides],
            primary=self.primary,
            with_distances=False,
        )

    def latencies(self, sides: Sequence[Side], generator: Generator) -> list[list[Array]]:
        """In ns, of each run of each side, in the order of time."""
        walk = np.cumsum(generator.normal(0, DRIFT, BLOCKS * len(sides)))
        slots = generator.permuted(walk.reshape(BLOCKS, len(sides)), axis=1).T
        levels = slots + generator.normal(0, RUN, slots.shape)
        return [
            [self._run(side, level, generator) for level in mine]
            for side, mine in zip(sides, levels, strict=True)
        ]

    def _run(self, side: Side, level: float, generator: Generator) -> Array:
        log = level + np.log(side.slower) + generator.normal(0, self.scatter, side.requests)
        if side.warm_up:
            log += np.log1p(EXCESS * np.exp(-np.arange(side.requests) / side.warm_up))
        share, times = side.tail
        log += np.log(times) * (generator.random(side.requests) < share)
        exact = np.round(self.typical_ns * np.exp(log))
        if not side.step_ns:
            return np.asarray(exact)
        whole: Callable[[Array], Array] = np.floor if side.down else np.round
        return np.asarray(whole(exact / side.step_ns) * side.step_ns)


def unequal_lengths() -> list[HardCase]:
    """Runs of unlike length, whose warm-up takes as many requests, or as long, in both."""
    cases = []
    for by in ("requests", "time"):
        for short, long, warm_up, effect in (
            (1_000, 1_000, 400, 0.0),
            (1_000, 2_000, 400, 0.0),
            (1_000, 4_000, 400, 0.0),
            (1_000, 16_000, 400, 0.0),
            (600, 1_200, 150, 0.0),
            (1_000, 4_000, 100, 0.0),
            (4_000, 16_000, 400, 0.0),
            (950, 3_800, 150, 0.1),
        ):
            times = long / short if by == "time" else 1.0
            name = f"{short}:{long} requests, warm-up over {warm_up} by {by}, {effect:+.0%}"
            base = Side(short, warm_up=warm_up)
            condition = Side(long, 1 + effect, warm_up=warm_up * times)
            cases.append(HardCase(name, base, condition, effect, swapped=True))
        third = 2_000 / 9
        cases.append(
            HardCase(
                f"closed loop, warm-up over a third by {by}, +100 %",
                Side(2_000, warm_up=third),
                Side(1_000, 2.0, warm_up=third if by == "requests" else third / 2),
                1.0,
            )
        )
    for effect in (0.0, 0.1):
        name = f"1500 requests, warm-up over 300 on one side alone, {effect:+.0%}"
        warm = Side(1_500, 1 + effect, warm_up=300)
        cases.append(HardCase(name, Side(1_500), warm, effect))
    return cases


def tails() -> list[HardCase]:
    """Some requests alone are slower."""
    shares = ((0.0, 1.0), (0.02, 4.0), (0.05, 4.0), (0.1, 1.5))
    return [
        HardCase(f"{share:.0%} of requests x{times:g}", Side(), Side(tail=(share, times)), nan)
        for share, times in shares
    ]


def rounded() -> list[HardCase]:
    """Medians of 3 ms in whole milliseconds, on both sides or on one; and of 25 ms in ticks."""
    cases = []
    for scatter in (0.1, 0.3):
        for down in (False, True):
            how = f"whole ms ({'down' if down else 'nearest'}), scatter {scatter}"
            side = Side(step_ns=MILLISECOND, down=down)
            case = partial(HardCase, typical_ns=3e6, scatter=scatter)
            cases += [
                case(f"{how}, {effect:+.0%}", side, replace(side, slower=1 + effect), effect)
                for effect in (0.0, 0.1, 0.3)
            ]
            cases.append(case(f"one side in {how}", side, Side()))
    ticks = Side(step_ns=TICK)
    cases.append(HardCase("one side in ticks of 15.6 ms", Side(), ticks, typical_ns=25e6))
    return cases


def tail_lengths() -> list[HardCase]:
    """p99 of runs of unlike length."""
    case = partial(HardCase, primary="p99", swapped=True)
    return [
        case("p99 of 300:5,000 requests", Side(300), Side(5_000)),
        case("p99 of 2,000:8,000 requests", Side(2_000), Side(8_000)),
        case("p99 of 2,000:8,000 requests, +50 %", Side(2_000), Side(8_000, 1.5), 0.5),
    ]


def cases() -> list[HardCase]:
    """All of them."""
    return [*unequal_lengths(), *tails(), *rounded(), *tail_lengths()]
