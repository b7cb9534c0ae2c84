# SPDX-License-Identifier: Apache-2.0
"""Two one-sided tests (Schuirmann 1987): is a difference inside the bounds that matter?"""

from tare.stats.interval import Difference
from tare.stats.special import student_cdf


def equivalence_p(difference: Difference, low: float, high: float) -> float:
    """The larger p of the tests "not above `low`" and "not below `high`".

    At most alpha exactly when the interval of level 1 - 2 alpha lies inside [low, high].
    Raises ValueError unless low < high.
    """
    if not low < high:
        raise ValueError(f"expected low < high, found {low} and {high}")
    error = difference.standard_error
    if error == 0:
        return 0.0 if low < difference.estimate < high else 1.0
    above_low = student_cdf(difference.freedom, (low - difference.estimate) / error)
    below_high = student_cdf(difference.freedom, (difference.estimate - high) / error)
    return max(above_low, below_high)
