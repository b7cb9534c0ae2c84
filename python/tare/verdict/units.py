# SPDX-License-Identifier: Apache-2.0
"""Whether the requests of one run, or the runs of one condition, were recorded in two units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log10

import numpy as np

STEPS = (3, 6, 9)
"""From one unit of time to another, in powers of ten."""
NEAR = 0.1
"""In powers of ten, 26 %: what deciles know of the middle of a part."""
EMPTY = 1.5
"""Powers of ten between the parts that hold no request; services that answer in two ways, from
memory and from disk, are seldom so far apart with nothing between."""


def apart_within(quantiles: Mapping[float, float]) -> int | None:
    """1,000, a million or 10^9 where requests lie in two parts that far apart, else None.

    `quantiles` are a run's, by probability. The parts are those on either side of the widest gap
    between neighbouring quantiles; of each, its middle counts.
    """
    known = [(q, log10(value)) for q, value in sorted(quantiles.items()) if value > 0]
    if len(known) < len(quantiles) or len(known) < 3:
        return None
    # The slowest request alone is an outlier, no unit.
    gaps = [(high - low, at) for at, ((_, low), (_, high)) in enumerate(pairwise(known[:-1]))]
    gap, at = max(gaps)
    if gap < EMPTY:
        return None
    probabilities, levels = (np.array(column) for column in zip(*known, strict=True))
    below = np.interp(probabilities[at] / 2, probabilities[: at + 1], levels[: at + 1])
    above = np.interp((1 + probabilities[at + 1]) / 2, probabilities[at + 1 :], levels[at + 1 :])
    step = float(above - below)
    nearest = min(STEPS, key=lambda one: abs(step - one))
    return int(10**nearest) if abs(step - nearest) < NEAR else None


def apart_between(values: Sequence[float]) -> int | None:
    """1,000, a million or 10^9 where the least and the greatest value are that far apart."""
    step = log10(max(values) / min(values)) if values else 0.0
    nearest = min(STEPS, key=lambda one: abs(step - one))
    return int(10**nearest) if abs(step - nearest) < NEAR else None
