# SPDX-License-Identifier: Apache-2.0
"""Ticks are round numbers within the axis, and values are where they belong."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tare.report.figures import scales

positive = st.floats(1.0, 1e12)


@given(positive, positive)
@example(1e12, math.nextafter(1e12, 0))
def test_ticks_of_time_are_on_the_axis_and_in_order(end: float, other_end: float) -> None:
    low, high = sorted((end, other_end))
    for scale in (scales.times(low, high), scales.log_times(low, high)):
        places = [tick.at for tick in scale.ticks]
        assert places == sorted(set(places))
        assert len(places) <= 14
        for place in places:
            assert -1e-6 <= scale.share(place) <= 1 + 1e-6
        assert len({tick.label for tick in scale.ticks}) == len(places)


def test_ticks_are_round() -> None:
    shown = [tick.label.replace("\u00a0", " ") for tick in scales.times(52e3, 71e3).ticks]
    assert shown == ["55 µs", "60 µs", "65 µs", "70 µs"]
    shown = [tick.label.replace("\u00a0", " ") for tick in scales.log_times(4e4, 3e6).ticks]
    assert shown == ["50 µs", "100 µs", "200 µs", "500 µs", "1 ms", "2 ms"]
    signed = [tick.label for tick in scales.shares(-0.1, 0.1, 4, signed=True).ticks]
    assert signed == ["−10\u00a0%", "−5\u00a0%", "0\u00a0%", "+5\u00a0%", "+10\u00a0%"]
    assert [tick.at for tick in scales.numbers(0.4, 3.6, 16).ticks] == [1, 2, 3]


def test_ticks_that_three_digits_do_not_tell_apart_have_more() -> None:
    shown = [tick.label.replace("\u00a0", " ") for tick in scales.log_times(98e9, 100.5e9).ticks]
    assert shown == ["98 s", "98.5 s", "99 s", "99.5 s", "100 s", "100.5 s"]


def test_shares_of_a_scale() -> None:
    assert scales.Scale(10, 1_000, logarithmic=True).share(100) == pytest.approx(0.5)
    assert scales.Scale(4, 0).share(1) == pytest.approx(0.75)
    assert scales.Scale(3, 3).share(3) == 0.5
    labels = [tick.label for tick in scales.tail(3.2, with_median=True).ticks]
    assert labels == [f"{label}\u00a0%" for label in ("0", "50", "90", "99", "99.9")]


def test_extent_ignores_what_is_not_finite() -> None:
    assert scales.extent([2.0, math.nan, 4.0, math.inf], 0.5) == (1.0, 5.0)
    assert scales.extent([]) == (0.0, 1.0)
