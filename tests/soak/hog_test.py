# SPDX-License-Identifier: Apache-2.0
from tests.soak.hog import Try, faults

QUIET = [Try("quiet", "slower", 2.0, 0.0), Try("quiet", "slower", 1.9, 0.0)]
BURNER = [Try("burner", "slower", 5.0, 0.0)] * 9 + [Try("burner", "inconclusive", 5.0, 0.0)]


def test_what_is_as_on_the_quiet_machine_or_undecided_is_right() -> None:
    hog = [Try("hog", "slower", 2.5, 0.5), Try("hog", "inconclusive", 40.0, 0.5)]
    assert faults([*QUIET, *hog, *BURNER]) == []


def test_a_tail_that_the_hog_decides_is_wrong() -> None:
    found = faults([*QUIET, Try("hog", "slower", 41.0, 0.5), *BURNER])
    assert found == ["beside the hog slower by +4100%"]


def test_a_burning_layer_and_a_quiet_machine_need_verdicts() -> None:
    undecided = [Try("quiet", "inconclusive", None, 0.5), *QUIET, *BURNER[1:]]
    assert faults(undecided) == ["quiet is inconclusive", "the burning layer is slower in 8 of 9"]
