# SPDX-License-Identifier: Apache-2.0
from tare.report.typesetting import (
    count,
    duration,
    interval,
    p_value,
    percent,
    plural,
    safe,
    typeset,
)


def test_numbers_are_those_of_the_reasons_set_in_type() -> None:
    assert duration(-1410) == "−1.41\u00a0µs"
    assert duration(510, signed=True) == "+510\u00a0ns"
    assert percent(-0.1043) == "−10.4\u00a0%"
    assert percent(0.03, signed=False) == "3.0\u00a0%"
    for nothing in (None, float("nan")):
        assert duration(nothing) == percent(nothing) == "–"


def test_the_rest() -> None:
    assert interval(-0.0136, 0.0014) == "−1.4 to +0.14\u00a0%"
    assert interval(None, 0.1) == "–"
    assert p_value(0.0004) == "<\u00a00.001"
    assert p_value(0.055) == "0.055"
    assert count(1_234_567) == "1\u202f234\u202f567"
    assert plural(1, "run") == "1\u00a0run"
    assert plural(2, "run") == "2\u00a0runs"


def test_hidden_and_reversing_characters_are_replaced() -> None:
    assert safe("a\x1b[31m\u202eb\x00") == r"a\x1b[31m\u202eb\x00"
    assert safe("é\u4e2d ok") == "é\u4e2d ok"
    assert safe("abcdef", 4) == "abc…"


def test_numbers_stay_with_their_units() -> None:
    text = "p50 is -0.6 % (-1.4 % to 2 ms), over 8 blocks; see run-2"
    assert typeset(text).replace("\u00a0", "_") == (
        "p50 is −0.6_% (−1.4_% to 2_ms), over 8_blocks; see run-2"
    )
