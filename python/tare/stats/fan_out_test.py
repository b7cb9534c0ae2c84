# SPDX-License-Identifier: Apache-2.0
"""Fan-out against the published table and a count of outcomes."""

from itertools import product

import numpy as np
import pytest

from tare.stats.fan_out import meets_slowest, slower_than


def test_the_published_table() -> None:
    """Vinken (2022), table 3.4: requests of a page and its chance in percent."""
    found = 100 * meets_slowest([36, 64, 195, 291])
    assert found == pytest.approx([30.36, 47.44, 85.91, 94.63], abs=0.01)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_it_is_the_chance_summed_over_all_outcomes(share: float) -> None:
    expected = [
        sum(
            float(np.prod([share if slow else 1 - share for slow in page]))
            for page in product((True, False), repeat=requests)
            if any(page)
        )
        for requests in range(6)
    ]
    assert meets_slowest(range(6), share) == pytest.approx(expected)


def test_the_share_of_slow_requests_is_read_off_the_quantiles() -> None:
    quantiles, at = [10.0, 20.0, 40.0], [0.5, 0.9, 0.99]
    assert slower_than(20.0, quantiles, at) == pytest.approx(0.1)
    assert slower_than(30.0, quantiles, at) == pytest.approx(1 - 0.945)
    assert slower_than(41.0, quantiles, at) is None
    assert slower_than(9.0, quantiles, at) is None


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 0"):
        meets_slowest([-1])
    with pytest.raises(ValueError, match="finite"):
        meets_slowest([np.nan])
    with pytest.raises(ValueError, match="share"):
        meets_slowest([1], 1.5)
    with pytest.raises(ValueError, match="rising"):
        slower_than(1.0, [2.0, 1.0], [0.1, 0.2])
    with pytest.raises(ValueError, match="rising"):
        slower_than(1.0, [1.0, 2.0], [0.1])
