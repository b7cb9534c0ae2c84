# SPDX-License-Identifier: Apache-2.0
"""How often a page meets the slowest requests when it is made of many."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite

SLOWEST = 0.01
"""Share of the baseline's requests that lie beyond its p99."""


def meets_slowest(requests: npt.ArrayLike, share: float = SLOWEST) -> Array:
    """The chance 1 - (1 - share)^n that a page of n `requests` (k,) has one of the slow `share`.

    Requests are taken to be slow independently of each other (Dean and Barroso 2013). With the
    share of a condition's requests that are slower than the baseline's p99, less the chance at
    0.01, it is what the condition changes. Raises ValueError for n below 0, a share outside 0 to 1.
    """
    number = finite(requests)
    if (number < 0).any():
        raise ValueError("expected no fewer than 0 requests")
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share from 0 to 1, found {share}")
    if share == 1:
        return (number > 0).astype(np.float64)
    return np.asarray(-np.expm1(number * np.log1p(-share)))


def slower_than(threshold: float, quantiles: npt.ArrayLike, at: npt.ArrayLike) -> float | None:
    """The share of requests above `threshold`, from `quantiles` (k,) at probabilities `at` (k,).

    Linear between the two around it; None where the threshold lies outside of all of them.
    """
    values, shares = finite(quantiles, at_least=1), finite(at)
    if values.size != shares.size or (np.diff(values) < 0).any() or (np.diff(shares) <= 0).any():
        raise ValueError("expected as many rising quantiles as probabilities")
    if not values[0] <= threshold <= values[-1]:
        return None
    return float(1 - np.interp(threshold, values, shares))
