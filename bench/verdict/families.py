# SPDX-License-Identifier: Apache-2.0
"""Simulated experiments of many conditions and spans: summaries of runs, none of requests."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tare.samples.describe.warm_up_cuts import METRICS, SHAPE
from tare.samples.model import REQUEST, Experiment, Run
from tare.stats.arrays import Array

BUDGET = 0.03
RUN, DRIFT, SCATTER = 0.02, 0.01, 0.1
OWN = 0.5
"""Share of a run's effect that each span has for itself."""
BASELINE = "baseline"
REQUESTS = 1_000


@dataclass(frozen=True)
class Family:
    """Some conditions beside the baseline, each in some spans; the first span is around the others.

    `effect` is that of the last condition, in its last span, or in all where there is one.
    """

    conditions: int
    spans: int = 1
    blocks: int = 6
    effect: float = 0.0
    skewed: bool = False
    """Runs are late by chance, never early."""
    unequal: bool = False
    """Conditions, and spans, scatter by a quarter to four times as much as each other."""
    everywhere: bool = False
    """Whether all conditions have the effect, in all spans."""

    @property
    def changed(self) -> set[tuple[str, str]]:
        """The conditions and spans with an effect."""
        if not self.effect:
            return set()
        if not self.everywhere:
            return {(f"c{self.conditions}", _span(self.spans - 1))}
        conditions = range(1, self.conditions + 1)
        return {
            (f"c{condition}", _span(span)) for condition in conditions for span in range(self.spans)
        }


def draw(family: Family, generator: Generator) -> Experiment:
    """One experiment, blocked."""
    conditions, spans = family.conditions + 1, family.spans
    shape = (family.blocks, conditions, spans)
    walk = np.cumsum(generator.normal(0, DRIFT, family.blocks * conditions))
    log = generator.permuted(walk.reshape(family.blocks, conditions), axis=1)[:, :, None]
    log = log + RUN * np.sqrt(1 - OWN) * _noise(family, (family.blocks, conditions, 1), generator)
    log = log + RUN * np.sqrt(OWN) * _noise(family, shape, generator)
    if family.everywhere:
        log[:, 1:] += np.log1p(family.effect)
    elif family.effect:
        log[:, -1, -1] += np.log1p(family.effect)
    tail = np.array(SHAPE)
    error = np.sqrt(tail * (1 - tail) / REQUESTS) / np.maximum(1 - tail, 1e-3) ** 0.5 * SCATTER
    quantiles = _normal_quantiles() * SCATTER + log[..., None]
    quantiles = np.sort(quantiles + generator.normal(0, 1, quantiles.shape) * error, axis=-1)
    values = 1e6 * np.exp(quantiles)
    return Experiment(
        tuple(
            _run(values[block, condition, span], block, condition, span, conditions)
            for block in range(family.blocks)
            for condition in range(conditions)
            for span in range(spans)
        ),
        BASELINE,
        paired=True,
        budget=BUDGET,
    )


def _noise(family: Family, shape: tuple[int, ...], generator: Generator) -> Array:
    drawn = generator.normal(size=shape)
    if family.skewed:
        drawn = generator.exponential(size=shape) - 1
    if family.unequal:
        # The same in every experiment: what scatters more is no chance.
        drawn = drawn * np.geomspace(0.5, 2, shape[1])[:, None]
        drawn = drawn * np.geomspace(2, 0.5, shape[2])
    return np.asarray(drawn)


def _normal_quantiles() -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(SHAPE, 1 / REQUESTS, 1 - 0.5 / REQUESTS)))


def _span(number: int) -> str:
    return f"s{number}" if number else REQUEST


def _run(values: Array, block: int, condition: int, span: int, conditions: int) -> Run:
    at = dict(zip(SHAPE, values.tolist(), strict=True))
    return Run(
        environment="host",
        condition=f"c{condition}" if condition else BASELINE,
        block=block,
        run=block * conditions + condition,
        span=_span(span),
        requests=REQUESTS,
        errors=0,
        answered=REQUESTS,
        started_ns=None,
        summaries={name: at[q] for name, q in METRICS.items()},
        quantiles=at,
    )
