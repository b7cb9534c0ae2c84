# SPDX-License-Identifier: Apache-2.0
from functools import partial

import pytest

from tare.report.figures import time_series
from tare.report.figures.canvas import inline
from tare.report.figures.scales import linear

SECOND = 10**9


def metric(*values: float) -> time_series.Metric:
    places = [1_700_000_000 * SECOND + i * SECOND for i in range(len(values))]
    line = time_series.TimeSeries("a", "#000", places, values)
    return time_series.Metric("Memory", lambda low, high: linear(low, high, str, 3), str, [line])


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("values", [(7.0,), (7.0, 7.0), (1.0, 2.0, 5.0)])
def test_any_number_of_metrics_of_any_number_of_moments_is_drawn(
    count: int, values: tuple[float, ...]
) -> None:
    drawn = inline(partial(time_series.draw, metrics=[metric(*values)] * count), "Memory")
    # For wide and for narrow pages.
    assert drawn.count("<svg") == 2
    assert drawn.count(">Memory<") == 2 * count
