# SPDX-License-Identifier: Apache-2.0
import pytest
from bench.cases import Bar, Case, read_bars
from bench.results import ROOT

CASE = Case("one", "subject", "peer", "ns", [3.0, 2.0, 9.0], [1.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("of", "holds", "bar", "met"),
    [
        ("value", "at most", 3, True),
        ("value", "below", 3, False),
        ("least", "at least", 2, True),
        ("least", "at least", 2.1, False),
        ("difference", "at most", 2, True),
        ("difference", "at most", 1.9, False),
        ("ratio", "at least", 3, True),
        ("ratio", "at least", 3.1, False),
    ],
)
def test_a_bar_is_held_turn_by_turn(of: str, holds: str, bar: float, met: bool) -> None:
    assert Bar(of=of, holds=holds, bar=bar, sentence="").met(CASE) is met  # type: ignore[arg-type]


def test_every_part_has_bars_that_can_be_read() -> None:
    parts = [file.parent.name for file in ROOT.glob("bench/*/bars.toml")]
    assert parts
    for part in parts:
        assert all(bar.sentence for bar in read_bars(part).values())
