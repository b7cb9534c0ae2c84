# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.verdict.number_text import count, duration, percent


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (0.5, "0.50 ns"),
        (-0.001, "0.00 ns"),
        (999.4, "999 ns"),
        (999.9, "1.00 µs"),
        (1234, "1.23 µs"),
        (61_234, "61.2 µs"),
        (99_970, "100 µs"),
        (999_400, "999 µs"),
        (999_700, "1.00 ms"),
        (123_456_789, "123 ms"),
        (2.5e9, "2.50 s"),
        (1234e9, "1234 s"),
        (-1410, "-1.41 µs"),
    ],
)
def test_duration(nanoseconds: float, text: str) -> None:
    assert duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999.994, "999.99 ns"),
        (999.996, "1.0000 µs"),
        (48_236.4, "48.236 µs"),
        (9_999_960, "10.000 ms"),
    ],
)
def test_duration_with_more_digits(nanoseconds: float, text: str) -> None:
    assert duration(nanoseconds, digits=5) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0.00 %"),
        (0.00001, "0.00 %"),
        (-1e-6, "0.00 %"),
        (0.00213, "+0.21 %"),
        (0.00996, "+1.0 %"),
        (0.0234, "+2.3 %"),
        (-0.062, "-6.2 %"),
        (0.1043, "+10.4 %"),
        (0.9997, "+100 %"),
        (1.5, "+150 %"),
    ],
)
def test_percent(fraction: float, text: str) -> None:
    assert percent(fraction) == text


def test_signs_and_nouns() -> None:
    assert duration(510, signed=True) == "+510 ns"
    assert duration(0, signed=True) == "0 ns"
    assert percent(0.5, signed=False) == "50.0 %"
    assert percent(-0.5, signed=False) == "-50.0 %"
    assert count(1, "run") == "1 run"
    assert count(46_000, "request") == "46,000 requests"
