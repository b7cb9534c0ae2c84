# SPDX-License-Identifier: Apache-2.0
"""Manifests of pods are those that a Kubernetes cluster takes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.kubernetes_schema import check_pod

from tare.lab.environments.pod_files import (
    PodContainer,
    Volume,
    container_name,
    host_volumes,
    manifest,
)
from tare.plan.schema.environments import PodEnvironment

SMALLEST, LARGEST = 0.01, 4096.0
"""CPU time that a plan may ask for, and more than it will."""


def manifest_of(programs: list[str], cpus: float | None, memory: int | None) -> dict[str, Any]:
    containers = [
        PodContainer(
            container_name(program, number),
            "localhost/shop:1",
            [Volume(Path("/usr"), Path("/usr")), Volume(Path("/tmp/w"), Path("/tmp/w"), False)],
            cpus,
            memory,
        )
        for number, program in enumerate(programs, 1)
    ]
    return manifest("tare-pod-4194304-99", containers)


@given(
    programs=st.lists(st.text(), min_size=1, max_size=4),
    cpus=st.none() | st.floats(SMALLEST, LARGEST),
    memory=st.none() | st.integers(1, 1 << 60),
)
def test_kubernetes_takes_the_manifest_of_any_plan(
    programs: list[str], cpus: float | None, memory: int | None
) -> None:
    check_pod(manifest_of(programs, cpus, memory))


def test_a_file_with_a_colon_in_the_root_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [Path("/etc"), Path("/state:1:2")]
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(entries))
    found = [volume.path for volume in host_volumes(Path("/layer"))]
    assert found == [Path("/var"), Path("/etc")]


def test_the_smallest_share_of_cpu_time_is_not_rounded_to_none() -> None:
    settings = PodEnvironment(type="pod", cpus=SMALLEST)
    (container,) = manifest_of(["service"], settings.cpus, None)["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "10m"}


def test_a_key_that_kubernetes_does_not_know_is_refused() -> None:
    written = manifest_of(["service"], None, None)
    written["spec"]["containers"][0]["imagePullPolice"] = "Never"
    with pytest.raises(Exception, match="imagePullPolice"):
        check_pod(written)
