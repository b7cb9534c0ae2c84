# SPDX-License-Identifier: Apache-2.0
"""A simulated experiment as Tare's judge takes it, with all that its readers would have found."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from bench.verdict.scenarios import Design

from tare.samples.looks import HALF, METRICS, SHAPE, TWICE
from tare.samples.model import REQUEST, Distances, Experiment, Run
from tare.samples.steadiness import FEWEST
from tare.stats.arrays import Array
from tare.stats.distances import between
from tare.stats.steady import Steadiness, classify, common_cut
from tare.stats.steady_shared import cells, course, of_machine

BASELINE, CONDITION, CONTROL = NAMES = ("baseline", "condition", "control")
BUDGET = 0.03
PLACE = ("host", REQUEST)
"""The only environment and span."""


def experiment(latencies: Array, design: Design) -> Experiment:
    """The experiment of `latencies` (conditions, runs, requests) in ns, in the order of time."""
    went = _went(latencies, design)
    blocks, requests = latencies.shape[1:]
    warm_up = common_cut([went[at : at + blocks] for at in range(0, len(went), blocks)])
    cuts = {HALF: requests // 2}
    if 0 < 2 * warm_up < requests:
        cuts = {TWICE: 2 * warm_up} | cuts
    paired = design != "unblocked"
    return replace(
        _from(latencies, warm_up, went, paired),
        cuts={name: _from(latencies, first, went, paired) for name, first in cuts.items()},
    )


def _went(latencies: Array, design: Design) -> list[Steadiness]:
    """How each run went, all blocks of one condition before those of the next."""
    conditions, blocks, requests = latencies.shape
    edges = np.arange(0, requests + 1, FEWEST)
    levels = np.log(latencies).reshape(conditions, blocks, -1, FEWEST).mean(axis=3)
    if design == "interleaved":
        moves = of_machine([[course(run, edges) for run in levels[:, b]] for b in range(blocks)])
        levels = levels - np.array(moves)[:, cells(edges)]
    found = [classify(run, edges) for run in levels.reshape(conditions * blocks, -1)]
    return [one for one in found if one is not None]


def _from(latencies: Array, first: int, went: Sequence[Steadiness], paired: bool) -> Experiment:
    """The same from the request `first` of every run on."""
    kept = latencies[:, :, first:]
    quantiles, means = np.quantile(kept, SHAPE, axis=2), kept.mean(axis=2)
    conditions, blocks, answered = kept.shape
    blank = Run(PLACE[0], "", 0, 0, PLACE[1], answered, 0, answered, None, {})
    runs: list[Run] = []
    for block in range(blocks):
        for place in range(conditions):
            at = dict(zip(SHAPE, quantiles[:, place, block].tolist(), strict=True))
            summaries = {name: at[q] for name, q in METRICS.items()}
            runs.append(
                replace(
                    blank,
                    condition=NAMES[place],
                    block=block,
                    run=len(runs),
                    summaries=summaries | {"mean": float(means[place, block])},
                    quantiles=at,
                    steadiness=went[place * blocks + block].kind,
                )
            )
    return Experiment(
        tuple(runs),
        BASELINE,
        paired=paired,
        budget=BUDGET,
        control=CONTROL if conditions == len(NAMES) else None,
        distances={PLACE: _distances(kept)},
    )


def _distances(kept: Array) -> Distances:
    """Between all runs but those of the control, which no shape is asked of."""
    numbers = np.arange(kept.shape[0] * kept.shape[1]).reshape(kept.shape[1], -1)[:, :2]
    found = between([*kept[:2].reshape(-1, kept.shape[2])])
    return Distances(tuple(numbers.T.ravel().tolist()), found)
