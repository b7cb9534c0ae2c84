# SPDX-License-Identifier: Apache-2.0
"""Colours can be told from their background in both themes (WCAG 2.2, 1.4.3 and 1.4.11)."""

import re
from importlib.resources import files

import pytest

from tare.report.figures.marks import SERIES
from tare.report.page.cards import VERDICTS

TEXT = 4.5
GRAPHICS = 3.0


def theme(name: str) -> dict[str, str]:
    css = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", light))
    if name == "dark":
        colours |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", dark))
    return colours


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text(name: str) -> None:
    colours = theme(name)
    for text in ("ink", "soft", "link", *VERDICTS):
        for ground in ("page", "paper"):
            assert contrast(colours[text], colours[ground]) >= TEXT, (text, ground)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_series(name: str) -> None:
    page = theme(name)["page"]
    for colour in SERIES:
        assert contrast(colour, page) >= GRAPHICS, colour
