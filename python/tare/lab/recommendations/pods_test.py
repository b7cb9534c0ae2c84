# SPDX-License-Identifier: Apache-2.0
"""What is read of Kubernetes manifests, and what is not believed."""

from pathlib import Path

import pytest

from tare.lab.recommendations.pods import Container, Pod, read

MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata: { name: shop, labels: { istio-injection: enabled } }
---
apiVersion: v1
kind: Service
metadata: { name: front }
spec: { ports: [{ port: 80 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: front, namespace: shop }
spec:
  template:
    metadata:
      annotations: { sidecar.istio.io/inject: true }
    spec:
      nodeSelector: { kubernetes.io/hostname: node-1 }
      initContainers:
      - { name: once, image: busybox }
      - { name: mesh, image: envoy, restartPolicy: Always }
      containers:
      - { name: app, image: "shop:1" }
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - { topologyKey: kubernetes.io/hostname, labelSelector: {} }
"""


def test_a_deployment_has_the_marks_of_its_namespace(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(MANIFEST)
    assert read(tmp_path / "a.yaml") == [
        Pod(
            name="front",
            containers=[Container("app", "shop:1"), Container("mesh", "envoy")],
            marks={"istio-injection": "enabled", "sidecar.istio.io/inject": "true"},
            nodes=frozenset({"node-1"}),
            without_others=True,
        )
    ]


def test_json_and_lists_are_manifests_too(tmp_path: Path) -> None:
    pod = (
        '{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{}]}}'
    )
    (tmp_path / "a.json").write_text(f'{{"kind": "List", "items": [{pod}, 7]}}')
    assert read(tmp_path / "a.json") == [Pod("a", [Container("", "")], nodes=frozenset("n"))]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefghijk", "bcdefghijkl", strict=True)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: [", "line 1"),
        ("kind: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("just text", "has 0"),
        ("[" * 10_000, "a Kubernetes manifest"),
        ("kind: Pod\n---\n\0", "a Kubernetes manifest"),
        (BOMB + "kind: Service\nmetadata: { name: *l }", "has 0"),
    ],
)
def test_what_is_no_manifest_has_one_line(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    found = read(tmp_path / "a.yaml")
    assert isinstance(found, str)
    assert why in found
    assert "\n" not in found


def test_a_name_that_is_a_bomb_is_no_name(tmp_path: Path) -> None:
    text = (
        f"{BOMB}kind: Pod\nmetadata: {{ name: *l, labels: {{ a: *l }} }}\nspec: {{ nodeName: *l }}"
    )
    (tmp_path / "a.yaml").write_text(text)
    assert read(tmp_path / "a.yaml") == [Pod("without a name", [], {"a": ""})]
