# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.report.words import count, duration, interval, p_value, percent, plural, safe, typeset


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (0.5, "0.50 ns"),
        (999.4, "999 ns"),
        (999.9, "1.00 µs"),
        (1234, "1.23 µs"),
        (61_234, "61.2 µs"),
        (999_950, "1.00 ms"),
        (123_456_789, "123 ms"),
        (2.5e9, "2.50 s"),
        (-1410, "−1.41 µs"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_duration(nanoseconds: float | None, text: str) -> None:
    assert duration(nanoseconds).replace("\u00a0", " ") == text


def test_duration_with_a_sign() -> None:
    assert duration(510, signed=True) == "+510\u00a0ns"
    assert duration(0, signed=True) == "0\u00a0ns"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0.00 %"),
        (0.00001, "0.00 %"),
        (-0.00001, "0.00 %"),
        (0.00213, "+0.21 %"),
        (0.00996, "+1.0 %"),
        (0.0234, "+2.3 %"),
        (-0.062, "−6.2 %"),
        (0.09996, "+10 %"),
        (1.5, "+150 %"),
        (None, "–"),
    ],
)
def test_percent(fraction: float | None, text: str) -> None:
    assert percent(fraction).replace("\u00a0", " ") == text


def test_the_rest() -> None:
    assert interval(-0.0136, 0.0014) == "−1.4 to +0.14\u00a0%"
    assert interval(None, 0.1) == "–"
    assert p_value(0.0004) == "<\u00a00.001"
    assert p_value(0.055) == "0.055"
    assert count(1_234_567) == "1\u202f234\u202f567"
    assert plural(1, "run") == "1\u00a0run"
    assert plural(2, "run") == "2\u00a0runs"


def test_hidden_and_reversing_characters_are_replaced() -> None:
    assert safe("a\x1b[31m\u202eb\x00") == "a\ufffd[31m\ufffdb\ufffd"
    assert safe("é\u4e2d ok") == "é\u4e2d ok"
    assert safe("abcdef", 4) == "abc…"


def test_numbers_stay_with_their_units() -> None:
    text = "p50 is -0.6 % (-1.4 % to 2 ms), over 8 blocks; see run-2"
    assert typeset(text).replace("\u00a0", "_") == (
        "p50 is −0.6_% (−1.4_% to 2_ms), over 8_blocks; see run-2"
    )
