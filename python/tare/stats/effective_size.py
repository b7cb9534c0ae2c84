# SPDX-License-Identifier: Apache-2.0
"""How many independent observations a correlated series is worth."""

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import Array, finite


def effective_size(series: npt.ArrayLike) -> float | None:
    """n / (1 + 2 sum of autocorrelations) of a series (n,), at most n; None without spread.

    The sum ends by Geyer's (1992) initial positive sequence: at the first pair of neighbouring
    lags, (0, 1), (2, 3) ..., whose sum is not above zero.
    """
    values = finite(series)
    if values.size < 4 or float(np.ptp(values)) == 0:
        return None
    correlation = _autocorrelation(values)
    pairs = correlation[: correlation.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else pairs.size
    inflation = 2 * float(pairs[:end].sum()) - 1
    return float(values.size / max(inflation, 1.0))


def _autocorrelation(values: Array) -> Array:
    centred = values - values.mean()
    # Zero padding to twice the length keeps the transform's wrap-around out.
    spectrum = np.fft.rfft(centred, n=2 * centred.size)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[: centred.size]
    return np.asarray(covariance / covariance[0], dtype=np.float64)
