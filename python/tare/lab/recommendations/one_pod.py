# SPDX-License-Identifier: Apache-2.0
"""Recommendation 1: load generator and service are separate containers of the same pod.

Then no network is between them, and each has its own limits. Without a manifest, what makes a pod
is read from the kernel: separate file systems, and one network namespace.
"""

from ipaddress import ip_address

from tare.lab.recommendations.check_result import CheckResult, broken, by_readings, kept
from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.pods import Pod
from tare.lab.recommendations.service_mesh import is_mesh


def judge(run: RunObservations) -> CheckResult | None:
    """None for a run without load."""
    if run.pods and (run.started_by_plan or run.is_remote):
        return _by_manifest(run)
    if run.service is None or run.generator is None:
        return None
    pids = f"the load generator (PID {run.generator.pid}) and the service (PID {run.service.pid})"
    apart = run.service.files != run.generator.files
    near = run.service.network == run.generator.network and ip_address(run.address).is_loopback
    return by_readings(
        (
            apart,
            f"{pids} have different file systems, as separate containers do"
            if apart
            else f"{pids} have the same file systems, so they are not in separate containers",
        ),
        (
            near,
            f"they share a network namespace: {run.address} is its loopback, without a hop"
            if near
            else f"they have different network namespaces: the load goes to {run.address}",
        ),
    )


def _by_manifest(run: RunObservations) -> CheckResult:
    stated = run.plan.recommendations
    if stated.service is not None and not run.is_remote:
        homes = {who: _home(run, name) for who, name in _named(run).items()}
        if stated.service == stated.generator:
            return broken(f"container {stated.service} is both the service and the load generator")
        if len({*homes.values()}) == 1:
            return kept(f"manifest: {' and '.join(homes)} are in pod {homes.popitem()[1]}")
        where = ", ".join(f"{who} is in pod {pod}" for who, pod in homes.items())
        return broken(f"manifest: {where}")
    several = [pod for pod in run.pods if len(_own(pod)) > 1]
    if len(run.pods) == 1 and several:
        return kept(f"manifest: pod {several[0].name} has {', '.join(_own(several[0]))}")
    where = "; ".join(f"pod {pod.name} has {', '.join(_own(pod)) or 'none'}" for pod in run.pods)
    return broken(
        f"manifest: load generator and service are not separate containers of one pod: {where}"
    )


def _named(run: RunObservations) -> dict[str, str]:
    stated = run.plan.recommendations
    names = {"load generator": stated.generator, "service": stated.service}
    return {f"{who} (container {name})": name for who, name in names.items() if name is not None}


def _home(run: RunObservations, container: str) -> str:
    return next(pod.name for pod in run.pods if container in [box.name for box in pod.containers])


def _own(pod: Pod) -> list[str]:
    """The names of its containers but the proxies of a mesh."""
    return [container.name for container in pod.containers if not is_mesh(container)]
