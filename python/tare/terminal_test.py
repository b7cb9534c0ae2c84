# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from tare.terminal import both_ends, json_text, printable


@pytest.mark.parametrize("text", ["", "plain", "µs größer → 10 %", "日本語", "a\u00a0b", "é🙂"])
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("one\r\ntwo\x00", "one\\x0d\\x0atwo\\x00"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("zero\u200bwidth\u2028", "zero\\u200bwidth\\u2028"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("\u0601\u3164", "\\u0601\\u3164"),
        ("\U0001d173\U000e0100", "\\U0001d173\\U000e0100"),
        ("\x7f", "\\x7f"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_kept_characters_are_unchanged() -> None:
    assert printable("one\n\ttwo\x1b", "\n") == "one\n\\x09two\\x1b"


def test_json_has_no_raw_control_characters() -> None:
    text = "a\x1b\x7f\x9b\u202e"
    assert json_text([text], indent=None) == '["a\\u001b\\u007f\\u009b\\u202e"]'
    assert json.loads(json_text(text)) == text


@pytest.mark.parametrize(
    ("limit", "text"),
    [(9, "version-1"), (8, "vers…n-1"), (3, "v…1"), (2, "v…"), (1, "…"), (-4, "…")],
)
def test_both_ends(limit: int, text: str) -> None:
    assert both_ends("version-1", limit) == text
