# SPDX-License-Identifier: Apache-2.0
"""What every statistic accepts: one dimension, finite numbers."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def finite(values: npt.ArrayLike, at_least: int = 0) -> Array:
    """`values` as float64 of shape (n,).

    Raises ValueError for another shape, for NaN or infinity, and for fewer than `at_least`.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"expected one dimension, found {array.ndim}")
    if not np.isfinite(array).all():
        raise ValueError("expected finite numbers, found NaN or infinity")
    if array.size < at_least:
        raise ValueError(f"expected at least {at_least} values, found {array.size}")
    return array
