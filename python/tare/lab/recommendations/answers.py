# SPDX-License-Identifier: Apache-2.0
"""What a check of a recommendation answers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Answer:
    """A word, and the evidence for it: one line for each reading."""

    word: Literal["kept", "broken", "cannot tell"]
    evidence: tuple[str, ...]


def kept(*evidence: str) -> Answer:
    """What is recommended is done."""
    return Answer("kept", evidence)


def broken(*evidence: str) -> Answer:
    """Something else is done."""
    return Answer("broken", evidence)


def by_readings(*readings: tuple[bool, str]) -> Answer:
    """Kept if all readings are good; else broken, with the bad readings first."""
    evidence = tuple(line for _, line in sorted(readings, key=lambda reading: reading[0]))
    return Answer("kept" if all(good for good, _ in readings) else "broken", evidence)


def cannot_tell(*evidence: str) -> Answer:
    """Neither this machine nor the plan shows it."""
    return Answer("cannot tell", evidence)
