# SPDX-License-Identifier: Apache-2.0
"""Recommendations that the plan alone decides: where times are taken, kinds, environments."""

from collections.abc import Callable

import pytest

from tare.lab.recommendations import (
    micro_and_macro,
    monitor_distance,
    of_plan,
    several_environments,
)
from tare.plan import Plan

MakePlan = Callable[..., Plan]
HOOK, ENV = '{ type = "hook" }', '{ type = "env", variables = { A = "b" } }'
PROXY = '{ type = "proxy", program = "nginx" }'


@pytest.mark.parametrize(
    ("layers", "stated", "status", "evidence"),
    [
        (HOOK, "", "kept", "times are taken inside the hook: distance 0"),
        (PROXY, "", "kept", "client level, times are taken at the client: distance 0"),
        (ENV, "", "broken", "its level is not known (state hook_level)"),
        ('{ type = "link" }', "", "broken", "library level, times are taken at the client"),
        (ENV, 'hook_level = "runtime"', "broken", "distance 3"),
        (ENV, 'hook_level = "runtime"\nmonitor_level = "runtime"', "kept", "distance 0"),
        (HOOK, 'monitor_level = "client"', "broken", "distance 2"),
        ("", "", "kept", "no condition has a layer"),
    ],
)
def test_times_are_taken_near_to_the_hook(
    layers: str, stated: str, status: str, evidence: str, plan: MakePlan
) -> None:
    result = monitor_distance.judge(plan(other=layers, stated=stated))
    assert result.status == status
    assert evidence in result.evidence[0]


@pytest.mark.parametrize(("kind", "status"), [("both", "kept"), ("micro", "broken")])
def test_both_kinds_are_done(kind: str, status: str, plan: MakePlan) -> None:
    assert micro_and_macro.judge(plan(f'kind = "{kind}"', other=HOOK)).status == status
    assert micro_and_macro.judge(plan()).status == "broken"


@pytest.mark.parametrize(
    ("environments", "status"),
    [
        ('["host"]', "broken"),
        ('["host", "netns"]', "kept"),
        ('[{ type = "host", name = "a" }, { type = "host", name = "b" }]', "broken"),
        ('["container", { type = "container", name = "small", cpus = 1.0 }]', "kept"),
    ],
)
def test_environments_of_different_configuration(
    environments: str, status: str, plan: MakePlan
) -> None:
    assert several_environments.judge(plan(f"environments = {environments}")).status == status


def test_what_is_stored_is_limited(plan: MakePlan) -> None:
    number, long = 5, "x" * 60
    layers = ", ".join(f'{{ type = "agent", name = "{long}{n}", start = "a" }}' for n in range(40))
    stored = {
        recommendation.number: recommendation for recommendation in of_plan(plan(other=layers))
    }
    assert {*stored} == {5, 6, 10}
    assert len(stored[number].evidence) <= 20
