# SPDX-License-Identifier: Apache-2.0
"""The note about an experiment that was judged, got more blocks, and was judged again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tare.stats.interim_analysis import false_alarm_rate
from tare.verdict.number_text import percent

if TYPE_CHECKING:
    from tare.samples.model import Experiment

_ORDINALS = {2: "second", 3: "third"}


def interim_analyses(experiment: Experiment, comparisons: int) -> Iterator[str]:
    """The false-alarm rate of all looks together; `comparisons` share that of one look."""
    looks = experiment.looks
    if len(looks) < 2 or not comparisons:
        return
    rate = percent(false_alarm_rate(looks, experiment.alpha, comparisons), signed=False)
    which = _ORDINALS.get(len(looks), f"{len(looks)}th")
    *before, last = map(str, looks)
    yield (
        f"{which} look at this experiment ({', '.join(before)}, then {last} blocks): up to {rate}"
        " of experiments without an effect would raise a false alarm"
    )
