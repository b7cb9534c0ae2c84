# SPDX-License-Identifier: Apache-2.0
"""A service mesh is absent, justified, or weighed."""

from collections.abc import Callable

import pytest

from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.pods import Container, Pod
from tare.lab.recommendations.service_mesh import is_mesh, judge

Make = Callable[..., RunObservations]
PROXY = '{ type = "proxy", program = "nginx" }'
PLAIN = Pod("a", [Container("app", "my-envoy-client:1")])
MESH = Pod("a", [Container("app", "shop"), Container("istio-proxy", "docker.io/istio/proxyv2:1")])
INJECTED = Pod("a", [Container("app", "shop")], {"linkerd.io/inject": "enabled"})
NOT_INJECTED = Pod("a", [Container("app", "shop")], {"sidecar.istio.io/inject": "false"})


@pytest.mark.parametrize(
    ("pod", "status"),
    [(PLAIN, "kept"), (NOT_INJECTED, "kept"), (MESH, "broken"), (INJECTED, "broken")],
)
def test_a_mesh_in_the_manifest_needs_a_reason(pod: Pod, status: str, observations: Make) -> None:
    stated = judge(observations(stated='mesh = "ours always has one"', pods=[pod]))
    weighed = judge(observations(other=PROXY, pods=[pod]))
    bare = judge(observations(pods=[pod]))
    assert [result and result.status for result in (bare, stated, weighed)] == [
        status,
        "kept",
        "kept",
    ]


def test_a_proxy_in_every_condition_cannot_be_told_apart(observations: Make) -> None:
    result = judge(observations(plain=PROXY, other=PROXY))
    assert result is not None
    assert result.status == "broken"


def test_without_manifest_and_statement_it_is_unknown(observations: Make) -> None:
    result = judge(observations())
    assert result is not None
    assert result.status == "cannot tell"


@pytest.mark.parametrize(
    ("image", "mesh"),
    [
        ("cr.l5d.io/linkerd/proxy:stable-2.14", True),
        ("envoyproxy/envoy:v1.30", True),
        ("registry/envoy@sha256:1", True),
        ("linkerd/proxy-init-like-app", False),
        ("my/notenvoy", False),
    ],
)
def test_images_of_meshes(image: str, mesh: bool) -> None:
    assert is_mesh(Container("app", image)) is mesh
