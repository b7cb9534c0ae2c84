# SPDX-License-Identifier: Apache-2.0
"""What is read before, during and after the load of a run, for the checks to look at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tare.lab.machine.descriptors import Descriptors
from tare.lab.machine.saturation import Saturation
from tare.lab.recommendations.other_programs import Others
from tare.lab.recommendations.pods import Pod
from tare.plan import Condition, Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.manifest import Facts

PROC = Path("/proc")


@dataclass(frozen=True)
class Namespaces:
    """Those of a process, as the kernel names them."""

    pid: int
    network: str
    files: str

    @classmethod
    def of(cls, pids: Iterable[int], proc: Path = PROC) -> Namespaces | None:
        """Those of the first process that lives and can be read."""
        for pid in pids:
            with suppress(OSError):
                net, mnt = (os.readlink(proc / f"{pid}/ns/{kind}") for kind in ("net", "mnt"))  # noqa: PTH115
                return cls(pid, net, mnt)
        return None


@dataclass(frozen=True, kw_only=True)
class RunObservations:
    """A run, and what was read around its load."""

    plan: Plan
    condition: Condition
    address: str = "127.0.0.1"
    """Where the load reaches the service."""
    pods: Sequence[Pod] = ()
    """Of the manifests that describe where service and load generator run."""
    started_by_plan: bool = True
    """Whether the plan's commands may start them elsewhere; otherwise Tare starts them itself."""
    is_remote: bool = False
    """Whether Tare started them on other machines, as `pods` say."""
    service: Namespaces | None = None
    generator: Namespaces | None = None
    machine: Facts = field(default_factory=dict)
    """The fingerprint of the machine before the first run."""
    others: Others | None = None
    """Programs besides the experiment's, during the load."""
    saturation: Saturation | None = None
    """What the kernel held the service back by."""
    generator_saturation: Saturation | None = None
    descriptors: Descriptors | None = None
    """Of the process of the service that is nearest to its limit, after the load."""
    costs: Mapping[str, pa.Table | None] = field(default_factory=dict)
    """What layers wrote of their own cost."""
