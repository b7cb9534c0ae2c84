# SPDX-License-Identifier: Apache-2.0
"""Recommendation 8: neither the service nor the load generator reaches a limit of a resource.

A run that breaks it measures the limit, so it is invalid.
"""

from tare.lab.recommendations.check_result import CheckResult, broken, cannot_tell, kept
from tare.lab.recommendations.observations import RunObservations
from tare.lab.validity.resource_limits import GENERATOR, SERVICE, invalid_reasons


def judge(run: RunObservations) -> CheckResult | None:
    """None for a run without load."""
    if run.saturation is None:
        return None
    if run.is_remote and not run.saturation.counters:
        return cannot_tell("the control groups of the pods cannot be read")
    if found := invalid_reasons(run.saturation, run.generator_saturation, run.descriptors):
        return broken(*found)
    evidence = [
        f"{who} was throttled for {mine.time('throttled_time')}"
        for who, mine in ((SERVICE, run.saturation), (GENERATOR, run.generator_saturation))
        if mine is not None
    ]
    evidence.append("the kernel killed no process for lack of memory")
    if run.descriptors is not None:
        evidence.append(
            f"the service has {run.descriptors.open:,} of {run.descriptors.limit:,} descriptors"
        )
    return kept(*evidence)
