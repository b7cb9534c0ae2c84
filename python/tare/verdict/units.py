# SPDX-License-Identifier: Apache-2.0
"""Whether the requests of one run, or the runs of one condition, were recorded in two units."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10, sqrt
from statistics import NormalDist

import numpy as np

from tare.samples.far import middle
from tare.samples.model import Run

STEPS = (3, 6, 9)
"""From one unit of time to another, in powers of ten."""
NEAR = 0.1
"""In powers of ten, 26 %: of medians of runs."""
CLOSE = 0.05
"""In powers of ten, 12 %: of parts of a run."""
OUTER = 0.05
"""Share of the others at either end that says little of how much they scatter."""
FEW = 10
"""Requests that a scatter can be told of."""
ALIKE = 1.6
"""How many times as much one part may scatter as the other and still be alike."""


def apart_within(run: Run) -> int | None:
    """1,000, a million or 10^9 where some requests are that far apart from the others, else None.

    Those of another unit are scattered as much as the others are, in logarithms. Time-outs, which
    are all alike, and tails, which have no step, are not.
    """
    at = log10(middle(run.quantiles))
    above = sum(part.requests for part in run.far if part.level > at)
    below = sum(part.requests for part in run.far) - above
    others = run.answered - above - below
    # The quantiles of the others alone, by their shares of these.
    shares = {q: (q * (run.answered - 1) - below) / max(others - 1, 1) for q in run.quantiles}
    known = [
        (shares[q], log10(value))
        for q, value in sorted(run.quantiles.items())
        if OUTER <= shares[q] <= 1 - OUTER and value > 0
    ]
    if len(known) < 2:
        return None
    level = float(np.interp(0.5, [share for share, _ in known], [log for _, log in known]))
    ends = [NormalDist().inv_cdf(share) for share, _ in (known[0], known[-1])]
    spread = (known[-1][1] - known[0][1]) / (ends[1] - ends[0])
    for part in run.far:
        step = abs(part.level - level)
        nearest = min(STEPS, key=lambda one: abs(step - one))
        error = 2 * part.spread / sqrt(part.requests)
        alike = spread / ALIKE < part.spread < spread * ALIKE
        if part.requests >= FEW and abs(step - nearest) < CLOSE + error and alike:
            return int(10**nearest)
    return None


def apart_between(values: Sequence[float]) -> int | None:
    """1,000, a million or 10^9 where the least and the greatest value are that far apart."""
    step = log10(max(values) / min(values)) if values else 0.0
    nearest = min(STEPS, key=lambda one: abs(step - one))
    return int(10**nearest) if abs(step - nearest) < NEAR else None
