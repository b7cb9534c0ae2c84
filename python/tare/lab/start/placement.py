# SPDX-License-Identifier: Apache-2.0
"""On which CPUs the service and the load generator run."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tare.plan import CommandLoad, OwnLoad, Plan, expected, refused
from tare.plan.schema.placement import LARGEST, cpu_list


@dataclass(frozen=True)
class Placement:
    """CPU numbers, and why so."""

    service: list[int]
    generator: list[int]
    why: str


def place(plan: Plan, cpus: Sequence[int]) -> Placement:
    """The plan's placement on the CPUs that this process may use, or the default and its reason.

    One user back to back is placed on the service's core: then client and service never run at
    the same time anyway, and on different cores each request would wait twice for the other
    core to wake up, which takes longer than the request and varies with everything around.
    """
    cpus = sorted(cpus)
    asked = plan.placement
    if isinstance(asked, dict):
        service, generator = asked["service"], asked["generator"]
        why = f"service on CPU {cpu_list(service)}, load on CPU {cpu_list(generator)}"
        return Placement(service, generator, f"{why} (set in the plan)")
    together = _why_together(plan.load)
    if len(cpus) == 1:
        return Placement(cpus, cpus, "this machine has one CPU")
    if asked == "free":
        return Placement(cpus, cpus, "the kernel chooses (set in the plan)")
    if asked == "same-core" or (asked is None and not together):
        why = "set in the plan" if asked else "with one user, no core has to wake up"
        return Placement(cpus[-1:], cpus[-1:], f"service and load on the same core ({why})")
    threads = (plan.load.threads or 1) if isinstance(plan.load, OwnLoad) else len(cpus) // 2
    split = len(cpus) - min(threads, len(cpus) // 2)
    why = "set in the plan" if asked else together
    return Placement(cpus[:split], cpus[split:], f"service and load on different cores ({why})")


def check(plan: Plan) -> None:
    """Raises InputError where the plan names a CPU that this process may not use."""
    if not isinstance(plan.placement, dict):
        return
    usable = _usable()
    for who, cpus in plan.placement.items():
        if not usable.issuperset(cpus):
            wanted = f"CPUs that this process may use ({cpu_list(usable)})"
            raise refused(plan, ("placement", who), expected(wanted))


def _usable() -> set[int]:
    """All CPUs that the kernel lets this process have, also those that it does not run on now: a
    CPU that is kept free by `isolcpus` is what a measurement wants."""
    now = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(LARGEST + 1))
        return os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, now)


def _why_together(load: OwnLoad | CommandLoad) -> str:
    """Why client and service may both have work at the same time; empty where they never do."""
    if isinstance(load, CommandLoad):
        return "the load generator is not Tare's"
    if load.mode != "closed":
        return "requests are sent at a rate"
    if load.most_users > 1:
        return "several users"
    return "several outstanding requests" if load.most_under_way > 1 else ""


@contextmanager
def out_of_the_way(placement: Placement) -> Iterator[None]:
    """Keeps this process, with its progress bar, off the CPUs that are measured, where it can."""
    allowed = os.sched_getaffinity(0)
    rest = allowed - {*placement.service, *placement.generator}
    _move_all_threads(rest or allowed)
    try:
        yield
    finally:
        _move_all_threads(allowed)


def _move_all_threads(cpus: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cpus)
