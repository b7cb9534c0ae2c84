# SPDX-License-Identifier: Apache-2.0
"""A simulated experiment as Tare's judge takes it, with all that its readers would have found."""

from dataclasses import replace

import numpy as np

from tare.samples.model import REQUEST, Experiment, Run
from tare.stats.arrays import Array

BASELINE, CONDITION, CONTROL = NAMES = ("baseline", "condition", "control")
DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
NAMED = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99"}
BUDGET = 0.03


def experiment(latencies: Array, *, paired: bool) -> Experiment:
    """The experiment of `latencies` (conditions, runs, requests) in ns, in the order of time."""
    return _from(latencies, 0, paired)


def _from(latencies: Array, first: int, paired: bool) -> Experiment:
    """The same from the request `first` of every run on."""
    kept = latencies[:, :, first:]
    quantiles, means = np.quantile(kept, DECILES, axis=2), kept.mean(axis=2)
    conditions, blocks, answered = kept.shape
    blank = Run("host", "", 0, 0, REQUEST, answered, 0, answered, None, {})
    runs: list[Run] = []
    for block in range(blocks):
        for place in range(conditions):
            at = dict(zip(DECILES, quantiles[:, place, block].tolist(), strict=True))
            summaries = {name: at[q] for q, name in NAMED.items()}
            runs.append(
                replace(
                    blank,
                    condition=NAMES[place],
                    block=block,
                    run=len(runs),
                    summaries=summaries | {"mean": float(means[place, block])},
                    quantiles=at,
                )
            )
    control = CONTROL if conditions == len(NAMES) else None
    return Experiment(tuple(runs), BASELINE, paired=paired, budget=BUDGET, control=control)
