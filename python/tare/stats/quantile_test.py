# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.stats.quantile import supported


@pytest.mark.parametrize(
    ("at", "least"), [(0.5, 20), (0.9, 100), (0.99, 1_000), (0.999, 30_000), (0.001, 30_000)]
)
def test_so_many_independent_requests_support_a_quantile(at: float, least: int) -> None:
    assert supported(least, at)
    assert not supported(least - 1, at)
