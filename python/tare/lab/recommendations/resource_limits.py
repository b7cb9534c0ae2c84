# SPDX-License-Identifier: Apache-2.0
"""Recommendation 8: neither the service nor the load generator reaches a limit of a resource.

A run that breaks it measures the limit, so it is invalid.
"""

from tare.lab.machine import saturation
from tare.lab.recommendations.check_result import CheckResult, broken, kept
from tare.lab.recommendations.observations import GENERATOR, RunObservations


def judge(run: RunObservations) -> CheckResult | None:
    """None for a run without load."""
    if run.saturation is None:
        return None
    if found := reasons(run):
        return broken(*found)
    evidence = [
        f"{who} was throttled for {mine.counters.get('throttled_time', 0) / 1e9:.3g} s of"
        f" {mine.duration_ns / 1e9:.3g} s"
        for who, mine in (("the service", run.saturation), (GENERATOR, run.generator_saturation))
        if mine is not None
    ]
    evidence.append("the kernel killed no process for lack of memory")
    if run.descriptors is not None:
        evidence.append(
            f"the service has {run.descriptors.open:,} of {run.descriptors.limit:,} descriptors"
        )
    return kept(*evidence)


def reasons(run: RunObservations) -> list[str]:
    """Which limits were reached, each as the reason why the run is invalid."""
    found = []
    if run.saturation is not None:
        found.append(saturation.why_not(run.saturation))
    if run.generator_saturation is not None:
        found.append(saturation.why_not(run.generator_saturation, GENERATOR))
    if (most := run.descriptors) is not None and most.open >= most.limit:
        found.append(
            f"the service has {most.open:,} descriptors (PID {most.pid}), as many as it may have:"
            " raise its limit (ulimit -n)"
        )
    return [why for why in found if why is not None]
