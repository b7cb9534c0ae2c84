# SPDX-License-Identifier: Apache-2.0
"""How much of a mean is its slowest few requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.samples.model import Run

FEW = 10
"""Requests of a run, as many as a quantile needs beyond it to be spoken of."""
HIGHEST = 0.999


def without_slowest(runs: Sequence[Run]) -> list[float] | None:
    """For each run what its mean would be about without its slowest requests, in ns.

    All are summed up by the same quantiles, each for those up to it, to the highest that leaves
    `FEW` requests of the smallest run beyond it; so of two conditions the error is the same. None
    where more than `FEW` may be at work: as many as the slowest would not explain what the
    requests beyond that quantile add; and where a run has too few requests or no quantiles.
    """
    if not runs or any(not run.quantiles or "mean" not in run.summaries for run in runs):
        return None
    least = min(run.answered for run in runs)
    at = [q for q in sorted(runs[0].quantiles) if q <= HIGHEST and (1 - q) * least >= FEW]
    if len(at) < 2:
        return None
    found = [_mean(run.quantiles, at) for run in runs]
    beyond = [run.summaries["mean"] - mean for run, mean in zip(runs, found, strict=True)]
    possible = [FEW * max(run.quantiles.values()) / run.answered for run in runs]
    if any(more > most for more, most in zip(beyond, possible, strict=True)):
        return None
    return found


def _mean(quantiles: Mapping[float, float], at: Sequence[float]) -> float:
    """The mean of the requests up to the last of the quantiles."""
    shares = [q - before for before, q in zip((0.0, *at), at, strict=False)]
    total = sum(share * quantiles[q] for share, q in zip(shares, at, strict=True))
    return total / at[-1]
