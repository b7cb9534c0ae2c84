# SPDX-License-Identifier: Apache-2.0
"""Kubernetes: kubectl must reach a cluster with two nodes that take pods."""

from tare.lab.doctor.finding import Found
from tare.lab.environments.cluster.kubectl import kubectl, nodes
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import find

_NEEDED = 2


def kubernetes() -> Found:
    """The nodes of the cluster of kubectl's current context."""
    program = find("kubectl")
    if program is None:
        return Found("no", "kubectl is not installed", {"path": None, "nodes": []})
    try:
        known = nodes(kubectl(None, None))
    except RunError as error:
        why = str(error).removeprefix("kubectl: ")
        return Found("no", f"{program} reaches no cluster: {why}", {"path": program, "nodes": []})
    ready = sorted(name for name, takes_pods in known.items() if takes_pods)
    details = {"path": program, "nodes": ready}
    if len(ready) < _NEEDED:
        text = f"{len(ready)} of {len(known)} nodes take pods (two are needed)"
        return Found("no", text, details)
    return Found("yes", f"{len(ready)} nodes take pods", details)
