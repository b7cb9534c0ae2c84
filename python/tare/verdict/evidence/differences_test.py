# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tare.samples.manifest import Facts, Manifest
from tare.verdict.evidence.differences import PlanTables, differences, plan_tables

MANIFEST: dict[str, Any] = {
    "baseline": "plain",
    "runs": [],
    "design": "interleaved",
    "budget": 0.03,
    "machine": {"machine": "a1", "kernel": "6.1", "steal_now": 0.1},
    "placement": {"service": [0], "generator": [1], "why": "because"},
    "load": {"users": 1, "rate": 500.0, "capacity": {"rate": 1000}},
    "files": {"rules.toml": "11aa"},
    "conditions": [{"name": "plain", "layers": []}, {"name": "hook", "layers": [{"type": "hook"}]}],
}
PLAN = PlanTables({"command": "server --port {port}"}, {"box": {"type": "container"}})


def between(
    old: dict[str, Any],
    new: dict[str, Any],
    conditions: list[str],
    was: PlanTables = PLAN,
    now: PlanTables = PLAN,
) -> list[str]:
    manifests = [Manifest.model_validate(manifest) for manifest in (old, new)]
    return differences(manifests[0], manifests[1], conditions, was, now)


def test_nothing_differs_but_what_is_another_every_moment() -> None:
    later = MANIFEST | {
        "machine": {**MANIFEST["machine"], "steal_now": 0.4},
        "placement": {**MANIFEST["placement"], "why": "for another reason"},
        "load": {**MANIFEST["load"], "capacity": {"rate": 1100}},
        "started": "later",
    }
    assert between(MANIFEST, later, ["plain", "hook"]) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"machine": {"machine": "b2", "kernel": "6.1"}}, "another machine: the difference"),
        ({"machine": {"machine": "a1", "kernel": "6.5"}}, "another kernel: 6.1 (old), 6.5 (new)"),
        (
            {"placement": {"service": [0], "generator": [0]}},
            "another CPUs of the generator: [1] (old), [0] (new)",
        ),
        ({"load": {"users": 1, "rate": 550.0}}, "another load, rate: 500.0 (old), 550.0 (new)"),
        ({"files": {}}, "another file rules.toml: 11aa (old), none (new)"),
        ({"design": "blocks"}, "another design: interleaved (old), blocks (new)"),
        ({"name": "other"}, "another plan: none (old), other (new)"),
        ({"budget": 0.5}, "another budget: 0.03 (old), 0.5 (new)"),
    ],
)
def test_what_differs_is_named_alone(change: dict[str, Any], line: str) -> None:
    (found,) = between(MANIFEST, MANIFEST | change, ["plain"])
    assert found.startswith(line)


def test_another_service_is_named() -> None:
    (found,) = between(
        MANIFEST, MANIFEST, ["plain"], now=replace(PLAN, service={"command": "other"})
    )
    assert found.startswith("another service, command: server --port {port} (old)")


def test_only_layers_of_what_is_compared_count() -> None:
    other = [{"name": "plain", "layers": []}, {"name": "hook", "layers": [{"type": "env"}]}]
    new = MANIFEST | {"conditions": other}
    assert between(MANIFEST, new, ["plain"]) == []
    (found,) = between(MANIFEST, new, ["plain", "hook"])
    assert found.startswith("another layers of 'hook': ")


def test_layers_of_all_conditions_count_where_environments_are_compared() -> None:
    old = MANIFEST | {
        "compare": "environments",
        "baseline": "host",
        "environments": ["host", "box"],
    }
    other = [{"name": "plain", "layers": []}, {"name": "hook", "layers": [{"type": "env"}]}]
    (found,) = between(old, old | {"conditions": other}, ["host", "box"])
    assert found.startswith("another layers of 'hook': ")


def test_settings_of_an_environment_that_both_have_are_named() -> None:
    limited: dict[str, Facts] = {
        "box": {"type": "container", "memory": "1G"},
        "new": {"type": "host"},
    }
    (found,) = between(MANIFEST, MANIFEST, ["plain"], now=replace(PLAN, environments=limited))
    assert found == "another environment 'box', memory: none (old), 1G (new)"


def test_what_the_service_needs_is_part_of_it() -> None:
    was = replace(PLAN, services={"users": {"command": "a"}})
    now = replace(PLAN, services={"users": {"command": "b"}, "store": {"command": "c"}})
    assert between(MANIFEST, MANIFEST, ["plain"], was=was, now=now) == [
        "another service 'users', command: a (old), b (new)",
        "another list of services: ['users'] (old), ['users', 'store'] (new)",
    ]


def test_a_layers_key_without_a_value_is_no_difference() -> None:
    def hooked(**keys: object) -> dict[str, Any]:
        layers = [{"type": "hook", "rules": "a", **keys}]
        return MANIFEST | {"conditions": [{"name": "plain", "layers": layers}]}

    assert between(hooked(), hooked(at=None), ["plain"]) == []
    assert between(hooked(), hooked(at="users"), ["plain"])


def test_a_manifest_without_tables_is_no_reason_to_fail() -> None:
    needed = {key: MANIFEST[key] for key in ("baseline", "budget", "runs")}
    assert between(needed, needed | {"load": None}, ["plain"]) == []


def test_tables_come_from_the_plan_beside_the_manifest(tmp_path: Path) -> None:
    assert plan_tables(tmp_path) == PlanTables()
    named = '{ type = "container", name = "box" }'
    (tmp_path / "plan.toml").write_text(
        f'environments = ["host", {named}]\n[service]\ncommand = "x"\n'
    )
    box: Facts = {"type": "container", "name": "box"}
    found = PlanTables({"command": "x"}, {"host": {"type": "host"}, "box": box})
    assert plan_tables(tmp_path) == found
    users: Facts = {"name": "users", "command": "y"}
    with (tmp_path / "plan.toml").open("a") as file:
        file.write('[[services]]\nname = "users"\ncommand = "y"\n')
    assert plan_tables(tmp_path) == replace(found, services={"users": users})
    nested = f"{'[' * 5_000}{']' * 5_000}"
    for broken in (
        "[service",
        "service = 3\nenvironments = 3\nservices = [3]",
        f"service = {nested}",
    ):
        (tmp_path / "plan.toml").write_text(broken)
        assert plan_tables(tmp_path) == PlanTables()
