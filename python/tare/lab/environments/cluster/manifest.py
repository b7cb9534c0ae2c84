# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes manifest of two pods on different nodes: the service with its proxies, and the
load generator."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUN = "tare-run"
"""The label that both pods of a run have, and no other pod."""
LONGEST_S = 86_400
"""The cluster ends a pod after this time, also if its machine of tare never comes back."""
SERVICE = "service"
LOAD = "load"
KINDS = (SERVICE, LOAD)
"""The names of the pods, and of the container that each has."""
# It also reaps the processes whose parents have ended.
_WAIT = "while :; do sleep 2147483647 & wait; done"
_HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class ClusterPod:
    """One of the two pods."""

    name: str
    image: str
    containers: Sequence[str]
    """Their names."""
    folders: Sequence[Path]
    """Where all containers share an empty folder."""
    cpus: float | None = None
    """CPU time per second of each container."""
    memory: int | None = None
    """Bytes of each container."""
    node: str | None = None


def proxy(number: int) -> str:
    """The name of the container of the proxy with this number, from 1."""
    return f"proxy{number}"


def manifest(run: str, pods: Sequence[ClusterPod]) -> dict[str, Any]:
    """A list of pods (v1), none on the node of another."""
    items = [_pod(run, pod) for pod in pods]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _pod(run: str, pod: ClusterPod) -> dict[str, Any]:
    volumes = {path: f"v{number}" for number, path in enumerate(sorted({*pod.folders}))}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "labels": {RUN: run, "app.kubernetes.io/managed-by": "tare"},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LONGEST_S,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "shareProcessNamespace": False,
            "affinity": _affinity(run, pod.node),
            "volumes": [{"name": name, "emptyDir": {}} for name in volumes.values()],
            "containers": [
                {
                    "name": container,
                    "image": pod.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", _WAIT],
                    "resources": {"limits": _limits(pod)},
                    "volumeMounts": [
                        {"name": name, "mountPath": str(path)} for path, name in volumes.items()
                    ],
                }
                for container in pod.containers
            ],
        },
    }


def _affinity(run: str, node: str | None) -> dict[str, Any]:
    apart = {"labelSelector": {"matchLabels": {RUN: run}}, "topologyKey": _HOST}
    found: dict[str, Any] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    }
    if node is not None:
        # Not `nodeName`, which ignores whether the node has room.
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        found["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    return found


def _limits(pod: ClusterPod) -> dict[str, str]:
    limits = {}
    if pod.cpus is not None:
        limits["cpu"] = f"{round(pod.cpus * 1000)}m"
    if pod.memory is not None:
        limits["memory"] = str(pod.memory)
    return limits
