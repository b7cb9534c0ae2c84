# SPDX-License-Identifier: Apache-2.0
"""What others make of the same experiment: 1 slower, -1 faster, 0 neither.

Each takes as its unit what it takes itself, with its own defaults; where it asks for a level that
has no default of its own, it is 5 %.
"""

import csv
import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from bench.results import ROOT

from tare.stats.arrays import Array
from tare.stats.two_samples import (
    anderson_darling,
    kolmogorov_smirnov,
    mann_whitney,
    student_t,
    welch_t,
)

Side = Array | Sequence[Array]
"""Latencies of a condition: (runs, requests), or an array a run where they differ in length."""
BIN = ROOT / "target" / "peers" / "bin"
OTAVA = ROOT / "target" / "peers" / "otava" / "bin" / "python"
LEVEL = 0.05
SAMPLES, RESAMPLES, NOISE = 100, 2_000, 0.01
"""Criterion's samples a process, resamples (it has 100,000: fewer move only what is a few per
mille from its level) and noise threshold."""
SIGNED = ("pooled t", "hyperfine")

ABOUT = {
    "pooled t": "Student's t over the requests of all runs (Kahlhofer et al.)",
    "pooled KS": "Kolmogorov and Smirnov's test over the requests of all runs",
    "best-fit run": "Anderson and Darling's test between the two best-fit runs (Vinken)",
    "Mann-Whitney": "over the requests of all runs; google/benchmark has it over repetitions",
    "criterion": "bootstrapped t and the mean's change beyond 1 %, over 100 samples of successive"
    " requests (simulated: 10) of one run each",
    "hyperfine": "`scripts/welch_ttest.py` over the runs' means",
    "benchstat": "golang.org/x/perf: Mann-Whitney over the runs' means",
    "Otava": "change points in the runs' means, the baseline's before the condition's",
}


def in_process(first: Side, second: Side, distances: Array) -> dict[str, int]:
    """The verdicts of those that are a formula, on the latencies of both sides.

    `distances` are Anderson and Darling's between all runs, the first side's before the second's.
    """
    base, changed = np.concatenate(first), np.concatenate(second)
    means = means_of(first), means_of(second)
    found = {
        "pooled t": student_t(base, changed),
        "pooled KS": kolmogorov_smirnov(base, changed),
        "best-fit run": anderson_darling(*best_fit_runs(first, second, distances)),
        "Mann-Whitney": mann_whitney(base, changed),
        "hyperfine": welch_t(*means),
    }
    # A test of distributions has no side: it is that of the medians. A t has its own.
    median = float(np.median(changed) - np.median(base))
    verdicts = {
        name: int(np.sign(test.statistic if name in SIGNED else median))
        if test and test.p < LEVEL
        else 0
        for name, test in found.items()
    }
    return verdicts | {"criterion": criterion(first[0], second[0])}


def means_of(side: Side) -> Array:
    """What those that judge runs are given of each."""
    return np.array([run.mean() for run in side])


def best_fit_runs(first: Side, second: Side, distances: Array) -> tuple[Array, Array]:
    """Those of `tare.stats.best_fit`, by distances that are known: it would compute each anew."""
    runs = len(first)
    first_run = distances[:runs, :runs].sum(axis=1).argmin()
    second_run = distances[runs:, runs:].sum(axis=1).argmin()
    return first[first_run], second[second_run]


def criterion(first: Array, second: Array) -> int:
    """As criterion.rs compares a process with one before: requests (n,) of a run each, as many
    hundreds as there are."""
    base, new = (
        run[: run.size // SAMPLES * SAMPLES].reshape(SAMPLES, -1).mean(axis=1)
        for run in (first, second)
    )
    weights = _weights()
    both = np.concatenate([new, base])
    both = both - both.mean()  # for the sums of squares: t knows no origin
    sums = weights @ np.stack([both, both**2], axis=1)
    resampled = _t(sums[0, :, 0], sums[0, :, 1], sums[1, :, 0], sums[1, :, 1])
    square = float((both[:SAMPLES] ** 2).sum()), float((both[SAMPLES:] ** 2).sum())
    t = _t(both[:SAMPLES].sum(), square[0], both[SAMPLES:].sum(), square[1])
    below = float(np.mean(resampled < t))
    if not 2 * min(below, 1 - below) < LEVEL:
        return 0
    halves = _halves()
    change = (halves[0] @ new) / (halves[1] @ base) - 1
    low, high = np.quantile(change, [LEVEL / 2, 1 - LEVEL / 2])
    return 1 if low > NOISE else -1 if high < -NOISE else 0


def _t(sum_a: Array, square_a: Array | float, sum_b: Array, square_b: Array | float) -> Array:
    error = (square_a - sum_a**2 / SAMPLES + square_b - sum_b**2 / SAMPLES) / (SAMPLES - 1)
    return np.asarray((sum_a - sum_b) / np.sqrt(SAMPLES * error))


@cache
def _weights() -> Array:
    """How often a resample of both samples together takes each value, (2, RESAMPLES, 200)."""
    return _drawn(2 * SAMPLES)


@cache
def _halves() -> Array:
    """How often a resample of one sample takes each value, of two of them, (2, RESAMPLES, 100)."""
    return _drawn(SAMPLES)


def _drawn(values: int) -> Array:
    generator = np.random.default_rng(20230415)
    chances = np.full(values, 1 / values)
    return generator.multinomial(SAMPLES, chances, (2, RESAMPLES)).astype(np.float64)


def benchstat(pairs: Sequence[tuple[Array, Array]]) -> list[int]:
    """Of the means (runs,) of two conditions in ns: one run is one line of `go test -bench`."""
    with TemporaryDirectory() as name:
        files = [Path(name) / "base.txt", Path(name) / "new.txt"]
        for side, file in enumerate(files):
            file.write_text(
                "".join(
                    f"Benchmark{place} 1 {mean:.9g} ns/op\n"
                    for place, pair in enumerate(pairs)
                    for mean in pair[side]
                )
            )
        command = [str(BIN / "benchstat"), "-format", "csv", *map(str, files)]
        out = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    found = {row[0]: row[5] for row in csv.reader(StringIO(out)) if len(row) > 6}
    words = [found[str(place)] for place in range(len(pairs))]
    return [0 if word == "~" else -1 if word.startswith("-") else 1 for word in words]


def otava(pairs: Sequence[tuple[Array, Array]]) -> list[int]:
    """Of the same, as one series each."""
    series = [[*first.tolist(), *second.tolist()] for first, second in pairs]
    command = [str(OTAVA), str(Path(__file__).with_name("otava_series.py"))]
    out = subprocess.run(
        command, input=json.dumps(series), check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    changes: list[list[float]] = json.loads(out)
    return [0 if not steps else 1 if max(steps) > 0 else -1 for steps in changes]


TOOLS: dict[str, tuple[Path, Callable[[Sequence[tuple[Array, Array]]], list[int]]]] = {
    "benchstat": (BIN / "benchstat", benchstat),
    "Otava": (OTAVA, otava),
}
"""What is a program: where it is, and its verdicts on many experiments at once."""


def programs(pairs: Sequence[tuple[Array, Array]]) -> dict[str, list[int]]:
    """The verdicts of the programs that are here, on the runs' means of many experiments."""
    return {name: TOOLS[name][1](pairs) for name in installed()}


def installed() -> list[str]:
    """The programs that are here."""
    return [name for name, (program, _) in TOOLS.items() if program.exists()]


def absent(there: Iterable[str]) -> str | None:
    """What to tell of the programs that are not among the methods `there`; None for nothing."""
    missing = [name for name in TOOLS if name not in {*there}]
    if not missing:
        return None
    return f"{' and '.join(missing)}, not installed (`setup/install-peers`)"
