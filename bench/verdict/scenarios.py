# SPDX-License-Identifier: Apache-2.0
"""Simulated experiments: what disturbs a comparison of latencies, one thing at a time."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from scipy.signal import lfilter
from scipy.special import ndtr

from tare.stats.arrays import Array

REQUESTS = 1_000
RUNS = (3, 5, 6, 8, 10)
EFFECTS = (0.0, 0.02, 0.05, 0.10)
TYPICAL_NS = 1e6
SHIFT_EVERY, BURST = 200, 15
"""Requests: between shifts of the level on average, and in a burst of stolen CPU time."""
WARM = 40
"""Requests after which a warm-up has lost about two thirds of its excess."""

Design = Literal["unblocked", "blocked", "interleaved"]
Shape = Literal["normal", "heavy", "bimodal"]


@dataclass(frozen=True)
class Scenario:
    """One machine, one service and one way to carry an experiment out; shares unless said."""

    name: str
    design: Design = "blocked"
    shape: Shape = "normal"
    run: float = 0.02
    """Standard deviation of what a fresh start does to all requests of a run."""
    drift: float = 0.01
    """Standard deviation of the machine's step from one slot to the next: a random walk."""
    correlation: float = 0.0
    """Of a request's latency with that of the request before."""
    shifts: float = 0.0
    """How much slower the higher of two levels is, between which the machine changes."""
    stolen: float = 0.0
    """Mean share of requests that take twice as long because the CPU was away."""
    warm_up: float = 0.0
    """By how much the first request is slower; it decays."""


def _designs(name: str, design: Design) -> tuple[Scenario, ...]:
    """What the three designs are compared on."""
    return (
        Scenario(f"{name}", design),
        Scenario(f"{name}, drift 3 %", design, drift=0.03),
        Scenario(f"{name}, CPU stolen", design, stolen=0.05),
        Scenario(
            f"{name}, all at once",
            design,
            shape="heavy",
            correlation=0.7,
            shifts=0.1,
            stolen=0.05,
            drift=0.03,
        ),
    )


SCENARIOS = (
    *_designs("blocked", "blocked"),
    Scenario("blocked, heavy tail", shape="heavy"),
    Scenario("blocked, two modes", shape="bimodal"),
    Scenario("blocked, level shifts", shifts=0.1),
    Scenario("blocked, autocorrelation 0.9", correlation=0.9),
    Scenario("blocked, runs 0.5 %", run=0.005),
    Scenario("blocked, runs 1 %", run=0.01),
    Scenario("blocked, runs 5 %", run=0.05),
    Scenario("blocked, warm-up", warm_up=0.5),
    *_designs("interleaved", "interleaved"),
    Scenario("interleaved, runs 0.5 %", "interleaved", run=0.005),
    *_designs("unblocked", "unblocked"),
)


def draw(scenario: Scenario, runs: int, generator: Generator) -> Array:
    """Latencies in ns of equal conditions, (3, runs, REQUESTS), in the order of time within a run.

    The conditions are the baseline, what it is compared with, and the baseline once more. Of an
    unblocked experiment all runs of the first come before all of the second; there is no third.
    """
    conditions = 2 if scenario.design == "unblocked" else 3
    shape = (conditions, runs, REQUESTS)
    # Slices of an interleaved block see one and the same machine; runs of their own slots do not.
    machine = (1, runs, REQUESTS) if scenario.design == "interleaved" else shape
    log = generator.normal(0, scenario.run, (conditions, runs, 1))
    log = log + _slots(scenario, conditions, runs, generator)[:, :, None]
    if scenario.shifts:
        log = log + np.log1p(scenario.shifts) * _two_levels(machine, generator)
    if scenario.stolen:
        log = log + np.log(2) * _bursts(machine, scenario.stolen, generator)
    if scenario.warm_up:
        decay = np.exp(-np.arange(REQUESTS) / (WARM * generator.uniform(0.5, 1.5, (*shape[:2], 1))))
        log = log + np.log1p(scenario.warm_up * decay)
    return TYPICAL_NS * np.exp(log + _requests(scenario, shape, generator))


def _slots(scenario: Scenario, conditions: int, runs: int, generator: Generator) -> Array:
    """How slow the machine is in each run's slot, (conditions, runs)."""
    if scenario.design == "interleaved":
        return np.cumsum(generator.normal(0, scenario.drift, (1, runs)), axis=1)
    walk = np.cumsum(generator.normal(0, scenario.drift, conditions * runs))
    if scenario.design == "unblocked":
        return walk.reshape(conditions, runs)
    return generator.permuted(walk.reshape(runs, conditions), axis=1).T


def _two_levels(shape: tuple[int, ...], generator: Generator) -> Array:
    """0 or 1, for a random time each."""
    changes = generator.random(shape) < 1 / SHIFT_EVERY
    first = generator.integers(0, 2, (*shape[:-1], 1))
    return np.asarray((np.cumsum(changes, axis=-1) + first) % 2, dtype=np.float64)


def _bursts(shape: tuple[int, ...], share: float, generator: Generator) -> Array:
    """1 in bursts, which some runs have many of and some few."""
    rate = generator.exponential(share / BURST, (*shape[:-1], 1))
    starts = generator.random(shape) < rate
    return np.minimum(lfilter(np.ones(BURST), [1.0], starts.astype(np.float64), axis=-1), 1.0)


def _requests(scenario: Scenario, shape: tuple[int, ...], generator: Generator) -> Array:
    """What a request has of its own: logarithms, with a spread that is not the same in all runs."""
    noise = generator.normal(size=shape)
    if scenario.correlation:
        noise[..., 1:] *= np.sqrt(1 - scenario.correlation**2)
        noise = np.asarray(lfilter([1.0], [1.0, -scenario.correlation], noise, axis=-1))
    spread = np.exp(generator.normal(0, 0.05, (*shape[:-1], 1)))
    if scenario.shape == "normal":
        return np.asarray(np.log(np.maximum(1 + 0.1 * spread * noise, 0.1)))
    if scenario.shape == "bimodal":
        return np.asarray(np.log(1.5) * (generator.random(shape) < 0.3) + 0.05 * spread * noise)
    # Beyond the last twentieth Pareto's tail, whose variance is finite and whose kurtosis is not.
    beyond = np.maximum(ndtr(-noise) / 0.05, 1e-300)
    return np.asarray(spread * (0.15 * noise + np.where(beyond < 1, -np.log(beyond) / 2.5, 0.0)))
