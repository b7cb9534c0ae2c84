# SPDX-License-Identifier: Apache-2.0
"""A simulated experiment as Tare's judge takes it, with all that its readers would have found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from bench.verdict.scenarios import Design

from tare.samples.describe.steadiness import BATCHES, FEWEST
from tare.samples.describe.warm_up_cuts import HALF, METRICS, SHAPE, TWICE
from tare.samples.model import REQUEST, Beginning, Distances, Experiment, Run
from tare.stats.arrays import Array
from tare.stats.distances import between
from tare.stats.ordered_quantiles import OrderedQuantiles
from tare.stats.steady import Steadiness, classify, common_share, drift
from tare.stats.steady_shared import cells, course, of_machine

BASELINE, CONDITION, CONTROL = NAMES = ("baseline", "condition", "control")
BUDGET = 0.03
PLACE = ("host", REQUEST)
"""The only environment and span."""

Latencies = Sequence[Sequence[Array]] | Array
"""In ns, in the order of time, of each run (requests,) of each condition."""


@dataclass(frozen=True, eq=False)
class _Run:
    """One run, and how it went."""

    latencies: Array
    step: int
    batches: Array
    edges: npt.NDArray[np.int64]
    within: float
    went: Steadiness | None = None


def experiment(
    latencies: Latencies,
    design: Design,
    *,
    steps: Sequence[Sequence[int]] | None = None,
    primary: str = "p50",
    with_distances: bool = True,
) -> Experiment:
    """The experiment of `latencies`; `steps` in ns are those that each run was rounded to."""
    runs = [
        [_run(run, 0 if steps is None else steps[c][b]) for b, run in enumerate(condition)]
        for c, condition in enumerate(latencies)
    ]
    if design == "interleaved":
        runs = _without_machine(runs)
    runs = [
        [replace(run, went=classify(run.batches, run.edges, run.within)) for run in condition]
        for condition in runs
    ]
    known = [[run.went for run in condition if run.went is not None] for condition in runs]
    share = common_share(known)
    sizes = [[run.latencies.size for run in condition] for condition in runs]
    first = [[round(share * size) for size in condition] for condition in sizes]
    cuts = {HALF: [[size // 2 for size in condition] for condition in sizes]}
    if any(map(any, first)):
        twice = [
            [max(cut, min(2 * cut, size // 2)) for cut, size in zip(*pair, strict=True)]
            for pair in zip(first, sizes, strict=True)
        ]
        cuts = {TWICE: twice} | cuts
    paired = design != "unblocked"
    found = replace(
        _from(runs, first, paired),
        cuts={name: _from(runs, cut, paired) for name, cut in cuts.items()},
    )
    if with_distances:
        found = replace(found, distances={PLACE: _distances(runs, first)})
    return found.asked(primary=primary)


def _run(latencies: Array, step: int) -> _Run:
    """The batches are those of `tare.samples.describe.steadiness.batch_means`."""
    count = min(BATCHES, max(latencies.size // FEWEST, 1))
    batch = np.arange(latencies.size) * count // latencies.size
    levels = np.log(np.maximum(latencies, 1))
    there = np.bincount(batch, minlength=count)
    means = np.bincount(batch, levels, count) / there
    spread = np.bincount(batch, levels**2, count) / there - means**2
    edges = (np.arange(count + 1) * latencies.size + count - 1) // count
    return _Run(latencies, step, means, edges, float(np.maximum(spread, 0).mean()))


def _without_machine(runs: Sequence[Sequence[_Run]]) -> list[list[_Run]]:
    blocks = [[condition[b] for condition in runs] for b in range(len(runs[0]))]
    moves = of_machine([[course(run.batches, run.edges) for run in block] for block in blocks])
    return [
        [
            replace(run, batches=run.batches - move[cells(run.edges)])
            for run, move in zip(condition, moves, strict=True)
        ]
        for condition in runs
    ]


def _from(
    runs: Sequence[Sequence[_Run]], first: Sequence[Sequence[int]], paired: bool
) -> Experiment:
    """The same from the request `first` of every run on."""
    found: list[Run] = []
    for block in range(max(map(len, runs))):
        for place, condition in enumerate(runs):
            if block < len(condition):
                run, cut = condition[block], first[place][block]
                found.append(_summary(run, cut, NAMES[place], block, len(found)))
    return Experiment(
        tuple(found),
        BASELINE,
        paired=paired,
        budget=BUDGET,
        control=CONTROL if len(runs) == len(NAMES) else None,
    )


def _summary(run: _Run, cut: int, condition: str, block: int, number: int) -> Run:
    kept = run.latencies[cut:]
    at = dict(zip(SHAPE, _quantiles(kept, run.step).tolist(), strict=True))
    return Run(
        environment=PLACE[0],
        condition=condition,
        block=block,
        run=number,
        span=PLACE[1],
        requests=kept.size,
        errors=0,
        answered=kept.size,
        started_ns=None,
        summaries={name: at[q] for name, q in METRICS.items()} | {"mean": float(kept.mean())},
        quantiles=at,
        steadiness=None if run.went is None else run.went.kind,
        worth=None if run.went is None else run.went.worth,
        step_ns=run.step,
        drift=drift(run.batches, run.edges, cut),
        beginning=Beginning(cut / run.latencies.size, float(run.latencies[:cut].mean()))
        if cut
        else None,
    )


def _quantiles(latencies: Array, step: int) -> Array:
    if not step:
        return np.asarray(np.quantile(latencies, SHAPE, method="median_unbiased"))
    values, counts = np.unique(latencies, return_counts=True)
    ordered = OrderedQuantiles([latencies.size], SHAPE, [step])
    ordered.add(values, np.zeros(values.size, dtype=np.int64), counts)
    return np.asarray(ordered.table()[0])


def _distances(runs: Sequence[Sequence[_Run]], first: Sequence[Sequence[int]]) -> Distances:
    """Between all runs but those of the control, which no shape is asked of."""
    count = len(runs)
    numbers = [block * count + place for place in (0, 1) for block in range(len(runs[place]))]
    kept = [
        run.latencies[cut:]
        for place in (0, 1)
        for run, cut in zip(runs[place], first[place], strict=True)
    ]
    return Distances(tuple(numbers), between(kept))


def width(low: float | None, high: float | None) -> float | None:
    """Of an interval; None where one of its ends is not known."""
    return None if low is None or high is None else high - low
