# SPDX-License-Identifier: Apache-2.0
"""When there are enough requests to estimate a quantile."""

LEAST_BEYOND = 10
"""Independent requests that must lie beyond a quantile. The estimate weighs ranks within about
three times sqrt(m) of the m beyond it: from m = 9 on these are all in the sample, with fewer the
estimate is a part of its greatest value. With 10 the true p99 lies between the estimated p98.4
and p99.6 in 95 % of runs."""
LEAST_BEYOND_FAR = 30
"""The same beyond p99. Where a tail falls off as 1/x^2 a quantile with m beyond it has a relative
standard error of 1 / (2 sqrt(m)): 9 %, where 10 would leave 16 %."""
_FAR = 0.01


def supported(effective: float, at: float) -> bool:
    """Whether `effective` independent requests (see `effective_size`) speak of the quantile `at`.

    At least 10 of them must lie beyond it, on its thinner side; 30 above p99 and below p1.
    """
    thinner = min(at, 1 - at)
    # 1 - 0.99 is a little more than 0.01.
    far = thinner < _FAR * (1 - 1e-9)
    return effective * thinner >= (LEAST_BEYOND_FAR if far else LEAST_BEYOND) * (1 - 1e-9)
