# SPDX-License-Identifier: Apache-2.0
"""CPU time of a service with its proxies, and whether it was all theirs that were watched."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.lab.processes.processes import Family

if TYPE_CHECKING:
    import pyarrow as pa

UNWATCHED = 0.2
"""Share of the CPU time that may have been used by processes that were not watched, or by threads
while they ended: a server with a thread for each connection uses a few percent for that."""

_PROCESS_CLOCK = 2
"""CPUCLOCK_SCHED, in the lowest bits of the number of a process's clock."""


@dataclass(frozen=True)
class Spent:
    """CPU time up to now, in ns."""

    pids: list[int]
    """Those that live."""
    theirs_ns: int
    """Their own, without that of the children they waited for."""
    all_ns: int
    """With that of processes that have ended, as far as the accounting knows of them."""


def spent(families: Sequence[Family]) -> Spent:
    """What commands have used so far with all that descends from them."""
    pids = [pid for family in families for pid in family.pids]
    return Spent(pids, sum(map(own_ns, pids)), sum(family.cpu_ns for family in families))


def watched_share(before: Spent, after: Spent, in_ticks: bool) -> float | None:
    """The share of the CPU time used in between that reading `before.pids` alone has read.

    None if processes came and went that used more than `UNWATCHED`. `in_ticks` says that `all_ns`
    comes from the process tree, which the kernel gives in clock ticks, user and system apart: a
    difference of a tick of each is no difference.
    """
    if before.pids != after.pids:
        return None
    used = after.all_ns - before.all_ns
    theirs = after.theirs_ns - before.theirs_ns
    unsure = 2 * len(after.pids) * 10**9 // os.sysconf("SC_CLK_TCK") if in_ticks else 0
    if used - theirs <= unsure:
        return 1.0
    share = theirs / used
    return share if share >= 1 - UNWATCHED else None


def of_all(cpu: dict[str, float], share: float | None) -> dict[str, float]:
    """CPU time a request of all processes and threads of the service, from that of the watched
    processes; without the service's if it is not known."""
    own = "service_ns_per_request"
    if share is None:
        return {name: value for name, value in cpu.items() if name != own}
    return {name: value / share if name == own else value for name, value in cpu.items()}


def own_ns(pid: int) -> int:
    """CPU time of a process, without that of its children; 0 where it does not live."""
    with suppress(OSError):
        return time.clock_gettime_ns((~pid << 3) | _PROCESS_CLOCK)
    return 0


def per_request(machine: "pa.Table") -> dict[str, float]:
    """Mean CPU time a request of service and generator, in ns, from the slices of one condition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    subject = machine["subject"].cast(pa.string())
    metric = machine["metric"].cast(pa.string())

    def total(of: str, what: str) -> float | None:
        rows = pc.and_(pc.equal(subject, of), pc.equal(metric, what))
        found: float | None = pc.sum(machine["value"].filter(rows)).as_py()
        return found

    requests = total("generator", "requests")
    used = {of: total(of, "cpu_time") for of in ("service", "generator")}
    if not requests:
        return {}
    return {f"{of}_ns_per_request": ns / requests for of, ns in used.items() if ns is not None}
