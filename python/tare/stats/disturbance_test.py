# SPDX-License-Identifier: Apache-2.0
"""The rule for disturbed slices on cases worked out by hand."""

import numpy as np
import pytest

from tare.stats.disturbance import clearly_above, quieter_half


def test_only_what_is_clearly_above_the_usual_is_told() -> None:
    usual = [0.30, 0.31, 0.29, 0.30, 0.32, 0.28, 0.30]
    assert clearly_above([*usual, 0.34]).tolist() == [False] * 8  # within 0.05
    assert clearly_above([*usual, 0.40]).tolist() == [False] * 7 + [True]


def test_a_wide_usual_level_needs_more() -> None:
    wide = [0.1, 0.2, 0.3, 0.4, 0.5]  # median 0.3, median absolute deviation 0.1
    assert clearly_above([*wide, 0.3, 0.85]).tolist() == [False] * 7
    assert clearly_above([*wide, 0.3, 0.95]).tolist() == [False] * 6 + [True]


def test_where_nothing_waits_a_small_wait_is_no_disturbance() -> None:
    assert clearly_above([0.0] * 10 + [0.04, 0.06]).tolist() == [False] * 11 + [True]
    assert clearly_above([]).size == 0
    with pytest.raises(ValueError, match="finite"):
        clearly_above([np.nan])


def test_at_most_half_stays_disturbed_the_worst_first() -> None:
    disturbed = np.array([True, True, True, False])
    assert quieter_half(disturbed, [1, 3, 2, 9]).tolist() == [False, True, True, False]
    assert quieter_half(disturbed, [1, 1, 1, 1], [5, 0, 7, 9]).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert quieter_half(np.ones(4, bool), [0, 0, 0, 0]).tolist() == [True, True, False, False]


def test_half_or_less_is_untouched() -> None:
    disturbed = np.array([True, False, False, True])
    assert quieter_half(disturbed, [0, 0, 0, 0]).tolist() == disturbed.tolist()
