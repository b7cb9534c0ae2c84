# SPDX-License-Identifier: Apache-2.0
"""The ten recommendations for benchmarks of function hooks, one file each: kept, broken or unknown.

From Kahlhofer et al., "Benchmarking Function Hook Latency in Cloud-Native Environments". The
ninth, more runs where they vary, needs the numbers of the verdict: `tare.report` answers it.
"""

from collections.abc import Callable, Mapping

from tare.lab.recommendations import (
    micro_and_macro,
    monitor_distance,
    one_node,
    one_pod,
    resource_limits,
    service_mesh,
    several_environments,
    tenancy,
    typical_use,
)
from tare.lab.recommendations.check_result import CheckResult
from tare.lab.recommendations.observations import RunObservations
from tare.plan import Plan
from tare.samples.manifest import LONGEST_LINE, Recommendation

_OF_PLAN: Mapping[int, Callable[[Plan], CheckResult]] = {
    5: monitor_distance.judge,
    6: micro_and_macro.judge,
    10: several_environments.judge,
}
_OF_RUN: Mapping[int, Callable[[RunObservations], CheckResult | None]] = {
    1: one_pod.judge,
    2: one_node.judge,
    3: service_mesh.judge,
    4: tenancy.judge,
    7: typical_use.judge,
    8: resource_limits.judge,
}


def of_plan(plan: Plan) -> list[Recommendation]:
    """Those that the plan alone decides."""
    return [_stored(number, judge(plan)) for number, judge in _OF_PLAN.items()]


def of_run(run: RunObservations) -> list[Recommendation]:
    """Those that were read around the load of a run."""
    results = {number: judge(run) for number, judge in _OF_RUN.items()}
    return [_stored(number, result) for number, result in results.items() if result is not None]


def _stored(number: int, result: CheckResult) -> Recommendation:
    evidence = [line[:LONGEST_LINE] for line in result.evidence[:20]]
    return Recommendation(number=number, answer=result.status, evidence=evidence)
