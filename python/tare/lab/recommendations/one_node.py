# SPDX-License-Identifier: Apache-2.0
"""Recommendation 2: where load generator and service are in separate pods, both are on one node.

The specification must say so: where a scheduler puts pods by chance, it may put them elsewhere
next time.
"""

from tare.lab.recommendations.check_result import CheckResult, broken, cannot_tell, kept
from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.pods import Pod


def judge(run: RunObservations) -> CheckResult | None:
    """Looks at the manifests, or at the processes of this machine."""
    if run.pods and (run.started_by_plan or run.is_remote):
        return _by_manifest(_asked(run))
    if run.service is None or run.generator is None:
        return cannot_tell(
            "no process of the service or of the load generator is on this machine, and the plan"
            " names no manifests"
        )
    return kept(
        f"the kernel of this machine runs both: the load generator is PID {run.generator.pid}, the"
        f" service is PID {run.service.pid}"
    )


def _asked(run: RunObservations) -> list[Pod]:
    """The pods of the load generator and of the service, or all."""
    stated = run.plan.recommendations
    wanted = {stated.service, stated.generator} - {None}
    if not wanted or run.is_remote:
        return list(run.pods)
    return [pod for pod in run.pods if wanted & {container.name for container in pod.containers}]


def _by_manifest(pods: list[Pod]) -> CheckResult:
    if len(pods) == 1:
        return kept(f"manifest: pod {pods[0].name} has both, and a pod is always on one node")
    nodes = tuple(f"pod {pod.name}: {_node(pod)}" for pod in pods)
    if any(pod.without_others for pod in pods):
        return broken("manifest: pods must be on different nodes", *nodes)
    bound = {*frozenset[str]().union(*(pod.nodes for pod in pods))}
    if len(bound) == 1 and all(pod.nodes for pod in pods):
        return kept(f"manifest: all pods are bound to node {bound.pop()}", *nodes)
    if len(bound) <= 1 and sum(pod.with_others for pod in pods) >= len(pods) - 1:
        return kept("manifest: pods must be on the node of the others", *nodes)
    return broken("manifest: nothing binds all pods to one node", *nodes)


def _node(pod: Pod) -> str:
    if pod.without_others:
        return "not on the node of others (podAntiAffinity)"
    if pod.with_others:
        return "on the node of others (podAffinity)"
    return f"node {' or '.join(sorted(pod.nodes))}" if pod.nodes else "any node"
