# SPDX-License-Identifier: Apache-2.0
"""Load generator and service on one node."""

from collections.abc import Callable

import pytest

from tare.lab.recommendations.observations import Namespaces, RunObservations
from tare.lab.recommendations.one_node import judge
from tare.lab.recommendations.pods import Container, Pod

Make = Callable[..., RunObservations]
ONE, TWO = frozenset({"node-1"}), frozenset({"node-2"})


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([Pod("a")], "kept"),
        ([Pod("a", nodes=ONE), Pod("b", nodes=ONE)], "kept"),
        ([Pod("a"), Pod("b", with_others=True)], "kept"),
        ([Pod("a", nodes=ONE), Pod("b", nodes=TWO)], "broken"),
        ([Pod("a", nodes=ONE), Pod("b", nodes=ONE | TWO)], "broken"),
        ([Pod("a", nodes=ONE), Pod("b")], "broken"),  # it is there only by luck
        ([Pod("a"), Pod("b", without_others=True)], "broken"),
        ([Pod("a"), Pod("b"), Pod("c", with_others=True)], "broken"),
    ],
)
def test_manifests_bind_all_pods_to_one_node(
    pods: list[Pod], status: str, observations: Make
) -> None:
    result = judge(observations(pods=pods))
    assert result is not None
    assert result.status == status


def test_only_the_pods_of_named_containers_count(observations: Make) -> None:
    pods = [
        Pod("a", [Container("app", "")], nodes=ONE),
        Pod("b", [Container("load", "")], nodes=ONE),
        Pod("c", [Container("db", "")], nodes=TWO),
    ]
    named = 'manifests = ["a.yaml"]\nservice = "app"\ngenerator = "load"'
    result = judge(observations(stated=named, pods=pods))
    assert result is not None
    assert result.status == "kept"


def test_processes_of_this_machine_are_on_one_node(observations: Make) -> None:
    here = Namespaces(1, "net:[1]", "mnt:[1]")
    results = [
        judge(observations(service=here, generator=here)),
        judge(observations(generator=here)),
    ]
    assert [result and result.status for result in results] == ["kept", "cannot tell"]
