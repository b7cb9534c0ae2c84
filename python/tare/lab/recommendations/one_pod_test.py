# SPDX-License-Identifier: Apache-2.0
"""Load generator and service in one pod, by manifests and by the namespaces of real processes."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tare.lab.recommendations.observations import Namespaces, RunObservations
from tare.lab.recommendations.one_pod import judge
from tare.lab.recommendations.pods import Container, Pod

Make = Callable[..., RunObservations]
SERVICE, LOAD, PROXY = (
    Container("app", "shop:1"),
    Container("load", "locust"),
    Container("istio-proxy", "istio/proxyv2"),
)


@contextmanager
def unshared(*options: str) -> Iterator[Namespaces]:
    """A process in namespaces of its own."""
    words = ["unshare", *options, "sh", "-c", "echo up; exec sleep infinity"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"up\n":
                pytest.skip("namespaces need root")
            place = Namespaces.of([process.pid])
            assert place is not None
            yield place
        finally:
            process.kill()


def test_separate_files_and_the_same_loopback_are_a_pod(observations: Make) -> None:
    with unshared("--mount") as service:
        result = judge(observations(service=service, generator=Namespaces.of([os.getpid()])))
    assert result is not None
    assert result.status == "kept"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--mount", "--net"], "they have different network namespaces"),
        (["--uts"], "have the same file systems"),
    ],
)
def test_another_network_or_the_same_files_are_no_pod(
    options: list[str], why: str, observations: Make
) -> None:
    with unshared(*options) as service:
        result = judge(observations(service=service, generator=Namespaces.of([os.getpid()])))
    assert result is not None
    assert result.status == "broken"
    assert why in result.evidence[0]


def test_an_address_that_is_no_loopback_is_no_pod(observations: Make) -> None:
    service, generator = Namespaces(1, "net:[1]", "mnt:[1]"), Namespaces(2, "net:[1]", "mnt:[2]")
    result = judge(observations(address="10.0.0.7", service=service, generator=generator))
    assert result is not None
    assert result.status == "broken"


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([Pod("one", [SERVICE, LOAD])], "kept"),
        ([Pod("one", [SERVICE, LOAD, PROXY])], "kept"),
        ([Pod("one", [SERVICE, PROXY])], "broken"),
        ([Pod("one", [SERVICE]), Pod("two", [LOAD])], "broken"),
        ([Pod("one", [SERVICE, LOAD]), Pod("two", [SERVICE])], "broken"),
    ],
)
def test_manifests_have_one_pod_with_both(pods: list[Pod], status: str, observations: Make) -> None:
    result = judge(observations(pods=pods))
    assert result is not None
    assert result.status == status


def test_named_containers_may_have_other_pods_beside_theirs(observations: Make) -> None:
    named = 'manifests = ["a.yaml"]\nservice = "app"\ngenerator = "load"'
    other = Pod("base", [Container("db", "postgres")])
    together = judge(observations(stated=named, pods=[Pod("one", [SERVICE, LOAD]), other]))
    apart = judge(
        observations(stated=named, pods=[Pod("one", [SERVICE]), Pod("two", [LOAD]), other])
    )
    assert together is not None
    assert apart is not None
    assert (together.status, apart.status) == ("kept", "broken")
    assert apart.evidence == (
        "manifest: load generator (container load) is in pod two, service (container app) is in"
        " pod one",
    )


def test_a_process_that_has_ended_has_no_place(tmp_path: Path) -> None:
    assert Namespaces.of([7], tmp_path) is None
