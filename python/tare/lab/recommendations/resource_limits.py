# SPDX-License-Identifier: Apache-2.0
"""Recommendation 8: neither the service nor the load generator reaches a limit of a resource.

A run that breaks it measures the limit, so it is invalid.
"""

from tare.lab.machine import saturation
from tare.lab.recommendations.answers import Answer, broken, kept
from tare.lab.recommendations.seen import GENERATOR, Seen


def judge(seen: Seen) -> Answer | None:
    """None for a run without load."""
    if seen.saturation is None:
        return None
    if found := reasons(seen):
        return broken(*found)
    evidence = [
        f"{who} was throttled for {mine.counters.get('throttled_time', 0) / 1e9:.3g} s of"
        f" {mine.duration_ns / 1e9:.3g} s"
        for who, mine in (("the service", seen.saturation), (GENERATOR, seen.generator_saturation))
        if mine is not None
    ]
    evidence.append("the kernel killed no process for lack of memory")
    if seen.descriptors is not None:
        evidence.append(
            f"the service has {seen.descriptors.open:,} of {seen.descriptors.limit:,} descriptors"
        )
    return kept(*evidence)


def reasons(seen: Seen) -> list[str]:
    """Which limits were reached, each as the reason why the run is invalid."""
    found = []
    if seen.saturation is not None:
        found.append(saturation.why_not(seen.saturation))
    if seen.generator_saturation is not None:
        found.append(saturation.why_not(seen.generator_saturation, GENERATOR))
    if (most := seen.descriptors) is not None and most.open >= most.limit:
        found.append(
            f"the service has {most.open:,} descriptors (PID {most.pid}), as many as it may have:"
            " raise its limit (ulimit -n)"
        )
    return [why for why in found if why is not None]
