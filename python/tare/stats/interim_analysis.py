# SPDX-License-Identifier: Apache-2.0
"""False alarms of an experiment that is judged again after more blocks were added.

Armitage, McPherson and Rowe (1969), Repeated significance tests on accumulating data, Journal of
the Royal Statistical Society A 132, 235-244: the sum of the differences of n blocks is a random
walk; every look holds it against the same quantile.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from tare.stats.arrays import Array

POINTS_PER_STEP = 4
"""Points of the quadrature per standard deviation of what is added between two looks."""
FEWEST_POINTS = 40


def false_alarm_rate(looks: Sequence[int], alpha: float, comparisons: int = 1) -> float:
    """The probability that an experiment without an effect raises an alarm at one of its looks.

    `looks` are the growing numbers of blocks at which all differences so far were tested at a
    two-sided `alpha`, which `comparisons` share. It is exact for one comparison of normal
    differences, and an upper bound for several. Raises ValueError for looks that do not grow.
    """
    if not looks or looks[0] < 1 or any(now <= before for before, now in pairwise(looks)):
        raise ValueError(f"the looks are {list(looks)}, expected growing numbers of blocks")
    if not 0 < alpha < 1 or comparisons < 1:
        raise ValueError(f"alpha is {alpha} of {comparisons}, expected a share of at least one")
    critical = NormalDist().inv_cdf(1 - alpha / comparisons / 2)
    return min(1.0, comparisons * (1 - _never_beyond(looks, critical)))


def _never_beyond(looks: Sequence[int], critical: float) -> float:
    """The probability that a walk of standard normal steps stays within `critical` standard
    deviations at every look."""
    steps = np.diff([0, *looks])
    places, weights = np.zeros(1), np.ones(1)
    for number, step in zip(looks, steps, strict=True):
        # `weights` are the probabilities of the walks that got to `places` so far.
        here, lengths = _quadrature(critical * sqrt(number), sqrt(step))
        weights = lengths * (_normal(here[:, None] - places, float(step)) @ weights)
        places = here
    return float(weights.sum())


def _quadrature(bound: float, deviation: float) -> tuple[Array, Array]:
    """Gauss and Legendre's points and weights from -bound to bound."""
    number = FEWEST_POINTS + ceil(POINTS_PER_STEP * 2 * bound / deviation)
    points, weights = np.polynomial.legendre.leggauss(number)
    return bound * points, bound * weights


def _normal(values: Array, variance: float) -> Array:
    density: Array = np.exp(-(values**2) / (2 * variance)) / sqrt(2 * np.pi * variance)
    return density
