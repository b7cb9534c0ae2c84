# SPDX-License-Identifier: Apache-2.0
"""How well a share is known from how often something happened."""

from tare.stats.special import beta_quantile


def clopper_pearson(hits: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share of which `hits` were seen in `of` (Clopper and Pearson 1934).

    It covers the true share at least as often as `level` says; from nothing seen it is (0, 1).
    Raises ValueError unless 0 <= hits <= of and 0 < level < 1.
    """
    if not 0 <= hits <= of:
        raise ValueError(f"expected 0 <= hits <= {of}, found {hits}")
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, found {level}")
    tail = (1 - level) / 2
    low = beta_quantile(hits, of - hits + 1, tail) if hits else 0.0
    high = beta_quantile(hits + 1, of - hits, 1 - tail) if hits < of else 1.0
    return low, high
