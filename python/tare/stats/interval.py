# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals for the difference of two conditions' runs."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from tare.stats.arrays import finite
from tare.stats.special import student_cdf, student_quantile


@dataclass(frozen=True)
class Difference:
    """An estimated difference, its standard error and degrees of freedom (Student's t)."""

    estimate: float
    standard_error: float
    freedom: float

    def interval(self, level: float) -> tuple[float, float]:
        """The interval of confidence `level` (0 to 1, exclusive)."""
        half = student_quantile(self.freedom, 0.5 + level / 2) * self.standard_error
        return self.estimate - half, self.estimate + half

    @property
    def p(self) -> float:
        """Of Student's t test against no difference, two-sided."""
        if self.standard_error == 0:
            return 1.0 if self.estimate == 0 else 0.0
        return 2 * student_cdf(self.freedom, -abs(self.estimate / self.standard_error))


def paired_difference(differences: npt.ArrayLike) -> Difference | None:
    """The mean of block differences (n,): error s / sqrt(n), n - 1 degrees; None below n = 2."""
    values = finite(differences)
    if values.size < 2:
        return None
    error = float(values.std(ddof=1)) / sqrt(values.size)
    return Difference(float(values.mean()), error, values.size - 1.0)


def welch_difference(first: npt.ArrayLike, second: npt.ArrayLike) -> Difference | None:
    """mean(second) - mean(first) of unpaired runs (n,) and (m,); None when either is below 2.

    Degrees of freedom by Welch (1947) and Satterthwaite (1946).
    """
    first, second = finite(first), finite(second)
    if first.size < 2 or second.size < 2:
        return None
    a, b = float(first.var(ddof=1)) / first.size, float(second.var(ddof=1)) / second.size
    estimate = float(second.mean() - first.mean())
    if a + b == 0:
        return Difference(estimate, 0.0, float(first.size + second.size - 2))
    freedom = (a + b) ** 2 / (a**2 / (first.size - 1) + b**2 / (second.size - 1))
    return Difference(estimate, float(np.sqrt(a + b)), freedom)
