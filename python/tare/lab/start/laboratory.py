# SPDX-License-Identifier: Apache-2.0
"""What every block of an experiment shares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tare.lab.processes.processes import Processes
from tare.lab.recommendations.pods import Pod
from tare.lab.result.folder import ResultFolder
from tare.lab.start.placement import Placement
from tare.plan import Plan


@dataclass(frozen=True)
class Laboratory:
    """The plan, its result, and what it may use of this machine."""

    plan: Plan
    folder: ResultFolder
    processes: Processes
    placement: Placement
    cpus: list[int]
    """All CPUs that tare was given."""
    experiment: str
    host: str
    tick: Callable[[float], None]
    """Is told the seconds since a group's load began."""
    pods: Sequence[Pod] = ()
    """Of the manifests that the plan names."""
