# SPDX-License-Identifier: Apache-2.0
"""How a time budget is best split between runs and requests in a run.

Kalibera and Jones (2013), "Rigorous benchmarking in reasonable time", sections 6 and 7, with two
levels: what a run costs before its first request (start, warm-up) buys a new draw of what runs
differ by; what a request costs buys a less noisy look at the same draw.
"""

from dataclasses import dataclass
from math import floor, inf, sqrt

import numpy.typing as npt

from tare.stats.arrays import finite

LEAST_RUNS = 2
"""Without a second run nothing says how far runs differ."""


@dataclass(frozen=True)
class Components:
    """Variances of the logs: of runs' true levels, and of one independent request around them."""

    between: float
    within: float


@dataclass(frozen=True)
class Split:
    """`runs` of a condition with `requests` each, and the standard error of their mean (of logs).

    `between_seen` is False where runs differed by no more than their requests explain: the best
    number of requests a run is then without bound, and only `least_runs` keeps runs from being few.
    """

    runs: int
    requests: int
    standard_error: float
    between_seen: bool


def components(
    means: npt.ArrayLike, variances: npt.ArrayLike, sizes: npt.ArrayLike
) -> Components | None:
    """From each run's mean, variance and effective number of requests (see `effective_size`), (n,).

    between = variance of the means - mean of variance / size, at least 0: means scatter by the
    noise of their requests, too. None below two runs. Raises ValueError for shapes that differ,
    negative variances, and sizes that are not above 0.
    """
    levels, noise, counts = finite(means), finite(variances), finite(sizes)
    if not levels.size == noise.size == counts.size:
        raise ValueError("expected as many means as variances and sizes")
    if (noise < 0).any() or (counts <= 0).any():
        raise ValueError("expected variances of at least 0 and sizes above 0")
    if levels.size < 2:
        return None
    between = float(levels.var(ddof=1) - (noise / counts).mean())
    return Components(max(between, 0.0), float(noise.mean()))


def best_requests(found: Components, run_cost: float, request_cost: float) -> float:
    """r* = sqrt((run cost / request cost) (within / between)); infinite where between is 0.

    Costs in one unit of time, `request_cost` that of an independent request: with requests that are
    correlated so many times more, n / `effective_size`. Raises ValueError for a run cost below 0
    and a request cost that is not above 0.
    """
    if run_cost < 0 or not request_cost > 0:
        raise ValueError(f"expected costs above 0, found {run_cost} and {request_cost}")
    if found.between == 0:
        return inf
    return sqrt(run_cost / request_cost * found.within / found.between)


def best_split(
    found: Components,
    run_cost: float,
    request_cost: float,
    budget: float,
    least_runs: int = LEAST_RUNS,
) -> Split | None:
    """How `budget` seconds of one condition give its mean the least standard error.

    The better of the whole numbers of runs around r*, what time is left over given to requests: no
    split has an error smaller by 0.1 %. At least `least_runs` runs with one request; None where
    the budget does not pay for these. `run_cost` and `request_cost` are in seconds.
    """
    wanted = max(best_requests(found, run_cost, request_cost), 1.0)
    most = floor(budget / (run_cost + request_cost))
    if most < max(least_runs, LEAST_RUNS):
        return None
    about = 0 if wanted == inf else floor(budget / (run_cost + wanted * request_cost))
    offers = [min(max(runs, least_runs, LEAST_RUNS), most) for runs in (about, about + 1)]
    return min(
        (_split(found, runs, (budget / runs - run_cost) / request_cost) for runs in offers),
        key=lambda split: split.standard_error,
    )


def _split(found: Components, runs: int, affordable: float) -> Split:
    requests = max(floor(affordable * (1 + 1e-9)), 1)  # decimals of seconds do not divide exactly
    error = sqrt((found.between + found.within / requests) / runs)
    return Split(runs, requests, error, found.between > 0)
