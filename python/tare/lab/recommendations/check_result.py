# SPDX-License-Identifier: Apache-2.0
"""The result of the check of a recommendation."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CheckResult:
    """The status, and the evidence for it: one line for each reading."""

    status: Literal["kept", "broken", "cannot tell"]
    evidence: tuple[str, ...]


def kept(*evidence: str) -> CheckResult:
    """What is recommended is done."""
    return CheckResult("kept", evidence)


def broken(*evidence: str) -> CheckResult:
    """Something else is done."""
    return CheckResult("broken", evidence)


def by_readings(*readings: tuple[bool, str]) -> CheckResult:
    """Kept if all readings are good; else broken, with the bad readings first."""
    evidence = tuple(line for _, line in sorted(readings, key=lambda reading: reading[0]))
    return CheckResult("kept" if all(good for good, _ in readings) else "broken", evidence)


def cannot_tell(*evidence: str) -> CheckResult:
    """Neither this machine nor the plan shows it."""
    return CheckResult("cannot tell", evidence)
