# SPDX-License-Identifier: Apache-2.0
"""Loops of MooBench's experiment: a JVM's file of results, and what is read from several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyarrow import csv

from tare.samples.model import REQUEST, Experiment, Run
from tare.verdict import Comparison, judge

COLUMNS = ("thread", "duration_ns", "heap", "collections")
HEAP_EACH = 100
BUDGET = 0.03


@dataclass(frozen=True)
class Loop:
    """The second half of the calls of one JVM's threads, as MooBench counts."""

    nanoseconds: npt.NDArray[np.int64]
    """Shape (n,)."""
    heap: npt.NDArray[np.int64]
    """Bytes in use, with each hundredth call."""
    collections: int
    complete: float | None
    """Events found afterwards by events written; None where none are."""

    @property
    def median(self) -> float:
        """In µs."""
        return float(np.median(self.nanoseconds)) / 1_000

    @property
    def mean(self) -> float:
        """In µs."""
        return float(np.mean(self.nanoseconds)) / 1_000

    @property
    def least(self) -> float:
        """In µs."""
        return float(np.min(self.nanoseconds)) / 1_000


def read(raw: Path, threads: int, complete: float | None) -> Loop:
    """Of a file that has the calls of one thread after those of another."""
    table = csv.read_csv(
        raw,
        csv.ReadOptions(column_names=COLUMNS),
        csv.ParseOptions(delimiter=";"),
        csv.ConvertOptions(include_columns=COLUMNS[1:]),
    )
    calls = table.num_rows // threads
    durations, heap, collections = (
        table[name].to_numpy().reshape(threads, calls)[:, calls // 2 :].ravel()
        for name in COLUMNS[1:]
    )
    return Loop(durations, heap[::HEAP_EACH].copy(), int(collections.sum()), complete)


@dataclass(frozen=True)
class Reading:
    """Both ways of reading loops: all of them, and the last alone, as MooBench's script does.

    Times are in µs, heap is in bytes.
    """

    least: float
    p10: float
    median: float
    mean: float
    sd: float
    p99: float
    last_mean: float
    last_sd: float
    last_ci95: float
    """Half the width of MooBench's interval of the last mean, as if calls were independent."""
    heap: float
    heap_variation: float
    collections: int
    complete: float | None
    """Of the loop in which most is missing."""

    @classmethod
    def of(cls, loops: Sequence[Loop]) -> Reading:
        every = np.concatenate([loop.nanoseconds for loop in loops]) / 1_000
        heap = np.concatenate([loop.heap for loop in loops])
        last = loops[-1].nanoseconds / 1_000
        p10, median, p99 = np.percentile(every, (10, 50, 99))
        shares = [loop.complete for loop in loops if loop.complete is not None]
        return cls(
            least=float(every.min()),
            p10=float(p10),
            median=float(median),
            mean=float(every.mean()),
            sd=float(every.std(ddof=1)),
            p99=float(p99),
            last_mean=float(last.mean()),
            last_sd=float(last.std(ddof=1)),
            last_ci95=float(1.959964 * last.std(ddof=1) / last.size**0.5),
            heap=float(heap.mean()),
            heap_variation=float(heap.std() / heap.mean()),
            collections=sum(loop.collections for loop in loops),
            complete=min(shares, default=None),
        )


def verdicts(taken: Mapping[str, Sequence[Loop]], baseline: str) -> dict[str, Comparison]:
    """Tare's own on each of the others: a loop is a run, and turns of all are a block."""
    runs = tuple(
        _run(name, block, loop)
        for name, loops in taken.items()
        for block, loop in enumerate(loops, start=1)
    )
    judgement = judge(Experiment(runs, baseline, paired=True, budget=BUDGET))
    return {
        comparison.condition: comparison
        for comparison in judgement.comparisons
        if comparison.role == "primary"
    }


def _run(name: str, block: int, loop: Loop) -> Run:
    calls = loop.nanoseconds.size
    p50, p95, p99 = np.percentile(loop.nanoseconds, (50, 95, 99)).tolist()
    return Run(
        environment="",
        condition=name,
        block=block,
        run=block,
        span=REQUEST,
        requests=calls,
        errors=0,
        answered=calls,
        started_ns=None,
        summaries={"p50": p50, "p95": p95, "p99": p99, "mean": loop.mean * 1_000},
    )


def for_github(taken: Mapping[str, Sequence[Loop]]) -> list[dict[str, Any]]:
    """MooBench's JSON for github-action-benchmark: mean and sd over the loops' means."""
    found = []
    for name, loops in taken.items():
        means = [loop.mean * 1_000 for loop in loops]
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
        found.append({"name": name, "unit": "ns", "value": float(np.mean(means)), "range": spread})
    return found
