# SPDX-License-Identifier: Apache-2.0
"""Recommendation 3: a service mesh is weighed: absent, justified, or a condition of its own."""

import re

from tare.lab.recommendations.check_result import CheckResult, broken, cannot_tell, kept
from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.pods import Container, Pod
from tare.plan import Plan

PROXIES = re.compile(
    r"(^|[/-])(istio-proxy|proxyv2|ztunnel|linkerd-proxy|linkerd2-proxy|linkerd/proxy"
    r"|envoy|envoy-sidecar|kuma-sidecar|kuma-dp|consul-dataplane|osm-envoy|cilium-envoy)([:@]|$)"
)
"""Names and images of the proxies of meshes."""
INJECTIONS = {
    "sidecar.istio.io/inject": ("true",),
    "istio-injection": ("enabled",),
    "istio.io/rev": (),
    "istio.io/dataplane-mode": ("ambient",),
    "linkerd.io/inject": ("enabled", "ingress"),
    "kuma.io/sidecar-injection": ("enabled", "true"),
    "consul.hashicorp.com/connect-inject": ("true",),
    "openservicemesh.io/sidecar-injection": ("enabled", "true"),
    "io.cilium.proxy-visibility": (),
    "policy.cilium.io/proxy-visibility": (),
}
"""Labels and annotations with which a mesh puts itself before a pod, and their values; all values
where none is given."""


def judge(run: RunObservations) -> CheckResult | None:
    """Looks at the manifests, the layers of the plan, and what its author states."""
    stated = run.plan.recommendations.mesh
    weighed = _weighed(run.plan)
    found = [line for pod in run.pods for line in _mesh(pod)]
    if weighed:
        return kept(weighed, *found)
    if stated is not None:
        return kept(f"the plan states: {stated}", *found)
    if weighed is None:
        return broken(
            "every condition has a proxy, so its cost is in all of them; add a condition without"
            " it, or state the reason (mesh)"
        )
    if found:
        return broken(
            "the plan has no condition with and without it, and states no reason (mesh)", *found
        )
    if run.pods:
        return kept("no container, label or annotation of the manifests belongs to a mesh")
    return cannot_tell(
        "no manifest, no condition with a proxy, and no statement (mesh) shows whether a mesh is"
        " between load and service"
    )


def is_mesh(container: Container) -> bool:
    """Whether a container is the proxy of a mesh."""
    return any(PROXIES.search(text) for text in (container.name, container.image))


def _mesh(pod: Pod) -> list[str]:
    containers = [
        f"container {container.name} of pod {pod.name} is a proxy of a mesh (image"
        f" {container.image or 'not known'})"
        for container in pod.containers
        if is_mesh(container)
    ]
    marks = [
        f"pod {pod.name} has {key}: {value}"
        for key, value in pod.marks.items()
        if key in INJECTIONS and (not INJECTIONS[key] or value in INJECTIONS[key])
    ]
    return containers + marks


def _weighed(plan: Plan) -> str | None:
    """How the plan weighs proxies; empty if it has none, None if every condition has the same."""
    proxies = {
        condition.name: [layer.type for layer in condition.layers].count("proxy")
        for condition in plan.conditions
    }
    if not any(proxies.values()):
        return ""
    if all(proxies.values()):
        return None
    having = ", ".join(name for name, number in proxies.items() if number)
    lacking = ", ".join(name for name, number in proxies.items() if not number)
    return f"conditions with a proxy ({having}) are compared with others without ({lacking})"
