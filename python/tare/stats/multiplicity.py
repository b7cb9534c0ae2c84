# SPDX-License-Identifier: Apache-2.0
"""p-values adjusted for how many were looked at; each keeps its place in the array."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite


def holm(p_values: npt.ArrayLike) -> Array:
    """Holm (1979): bounds the chance of even one false alarm among (n,) p-values."""
    p = chances(p_values)
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    return _back(adjusted, order)


def benjamini_hochberg(p_values: npt.ArrayLike) -> Array:
    """Benjamini & Hochberg (1995): bounds the share of false alarms among (n,) p-values."""
    p = chances(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    adjusted = np.minimum.accumulate(scaled[::-1])[::-1]
    return _back(adjusted, order)


def chances(p_values: npt.ArrayLike) -> Array:
    """`p_values` (n,), each from 0 to 1, else ValueError."""
    p = finite(p_values)
    if ((p < 0) | (p > 1)).any():
        raise ValueError("expected p-values from 0 to 1")
    return p


def _back(adjusted: Array, order: npt.NDArray[np.intp]) -> Array:
    result = np.empty_like(adjusted)
    result[order] = np.minimum(adjusted, 1.0)
    return result
