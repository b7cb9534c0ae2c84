# SPDX-License-Identifier: Apache-2.0
"""What a probe is, and what it gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["yes", "partly", "no"]


@dataclass(frozen=True)
class Found:
    """What one look at this machine found: a line for people, details for programs."""

    state: State
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    switches_off: str | None = None
    """What Tare cannot do, where this is less than without all of it."""
    get: str | None = None


@dataclass(frozen=True)
class Probe:
    """One question to this machine.

    `look` runs in a process of its own, in an empty folder that is removed afterwards, and is
    killed with everything it started after `limit_s` seconds.
    """

    group: str
    name: str
    look: Callable[[], Found]
    switches_off: str
    """What Tare cannot do without it."""
    get: str
    """How to get it."""
    limit_s: float = 10


@dataclass(frozen=True)
class Finding:
    """A probe's answer; `to_json` has the stable keys of `tare doctor --json`."""

    group: str
    name: str
    state: State
    found: str
    switches_off: str
    get: str
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def finding(probe: Probe, found: Found) -> Finding:
    return Finding(
        group=probe.group,
        name=probe.name,
        state=found.state,
        found=found.text,
        switches_off=found.switches_off or probe.switches_off,
        get=found.get or probe.get,
        details=found.details,
    )


def summary(findings: Sequence[Finding]) -> str:
    """One line: whether everything works, and what does not."""
    working = sum(finding.state == "yes" for finding in findings)
    if working == len(findings):
        return f"All {working} features work."
    parts = [f"{working} of {len(findings)} features work."]
    for state, what in (("no", "Missing"), ("partly", "Only in part")):
        names = [finding.name for finding in findings if finding.state == state]
        parts += [f"{what}: {', '.join(names)}."] if names else []
    return " ".join(parts)
