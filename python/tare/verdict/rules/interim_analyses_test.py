# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from tare.samples.model import Experiment
from tare.verdict.rules.interim_analyses import interim_analyses

EXPERIMENT = Experiment((), "plain", paired=True, budget=0.03)
REST = " of experiments without an effect would raise a false alarm"


@pytest.mark.parametrize(
    ("looks", "comparisons", "note"),
    [
        ((8, 16), 1, "second look at this experiment (8, then 16 blocks): up to 8.3 %"),
        ((8, 9), 1, "second look at this experiment (8, then 9 blocks): up to 6.6 %"),
        ((8, 16), 3, "second look at this experiment (8, then 16 blocks): up to 8.7 %"),
        ((8, 16, 24), 1, "third look at this experiment (8, 16, then 24 blocks): up to 10.7 %"),
        ((8, 16, 24, 32), 1, "4th look at this experiment (8, 16, 24, then 32 blocks): up to 12.6"),
    ],
)
def test_further_looks_state_their_rate(
    looks: tuple[int, ...], comparisons: int, note: str
) -> None:
    (found,) = interim_analyses(replace(EXPERIMENT, looks=looks), comparisons)
    assert found.startswith(note)
    assert found.endswith(REST)


@pytest.mark.parametrize(("looks", "comparisons"), [((), 1), ((8,), 1), ((8, 16), 0)])
def test_one_look_needs_no_note(looks: tuple[int, ...], comparisons: int) -> None:
    assert list(interim_analyses(replace(EXPERIMENT, looks=looks), comparisons)) == []
