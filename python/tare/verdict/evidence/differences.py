# SPDX-License-Identifier: Apache-2.0
"""What differs between two results besides what was to be compared: each a line of warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.samples.manifest import MOMENTARY, Facts, Manifest
from tare.untrusted import PLAN_BYTES, read_bytes, toml_table

_SHOWN = 60
_TABLES = {
    "machine": ("{}", MOMENTARY | {"machine"}),
    "placement": ("CPUs of the {}", {"why"}),
    "load": ("load, {}", {"capacity"}),  # measured anew by each; a rate made from it is `rate`
    "service": ("service, {}", set[str]()),
    "files": ("file {}", set[str]()),
}
"""Of a manifest: how a key is called, and the keys that say nothing here."""
_SETTINGS = {
    "name": "plan",
    "compare": "compare",
    "design": "design",
    "slice_ns": "slice_ns",
    "turns": "turns",
    "environments": "environments",
    "primary": "primary metric",
    "budget": "budget",
    "alpha": "alpha",
}


@dataclass(frozen=True)
class PlanTables:
    """What a plan says of its services and of its environments, by their names."""

    service: Facts = field(default_factory=dict)
    environments: Mapping[str, Facts] = field(default_factory=dict)
    services: Mapping[str, Facts] = field(default_factory=dict)
    """What the service needs."""


def differences(
    old: Manifest,
    new: Manifest,
    compared: Sequence[str],
    old_plan: PlanTables,
    new_plan: PlanTables,
) -> list[str]:
    """What two results say differently about the circumstances of the conditions, or the
    environments, that are `compared`."""
    found: list[str] = []
    if old.host != new.host:
        found.append(
            "another machine: the difference between machines cannot be separated from the"
            " service's"
        )
    changed: list[tuple[str, object, object]] = []
    for name, (called, ignored) in _TABLES.items():
        was, now = getattr(old, name, old_plan.service), getattr(new, name, new_plan.service)
        keys = sorted({*was, *now} - ignored)
        changed += ((called.format(key), was.get(key), now.get(key)) for key in keys)
    changed += ((called, getattr(old, key), getattr(new, key)) for key, called in _SETTINGS.items())
    layers = [
        {
            condition.name: [_set(layer) for layer in condition.layers]
            for condition in manifest.conditions
        }
        for manifest in (old, new)
    ]
    # Where environments are compared, each has all conditions.
    conditions = (
        compared if old.compare == "conditions" else [*dict.fromkeys([*layers[0], *layers[1]])]
    )
    changed += (
        (f"layers of '{name}'", layers[0].get(name), layers[1].get(name)) for name in conditions
    )
    for what, olds, news in (
        ("environment", old_plan.environments, new_plan.environments),
        ("service", old_plan.services, new_plan.services),
    ):
        for name in sorted(olds.keys() & news.keys()):
            was, now = olds[name], news[name]
            changed += (
                (f"{what} '{name}', {key}", was.get(key), now.get(key))
                for key in sorted({*was, *now})
            )
    changed.append(("list of services", [*old_plan.services], [*new_plan.services]))
    return found + [
        f"another {what}: {_text(was)} (old), {_text(now)} (new)"
        for what, was, now in changed
        if was != now
    ]


def plan_tables(folder: Path) -> PlanTables:
    """Those of a result's plan; empty where the plan cannot be read."""
    try:
        plan = toml_table(read_bytes(folder / "plan.toml", PLAN_BYTES).decode())
    except (OSError, ValueError):
        return PlanTables()
    service = plan.get("service")
    tables = [
        environment if isinstance(environment, dict) else {"type": environment}
        for environment in _listed(plan, "environments")
    ]
    needed = [table for table in _listed(plan, "services") if isinstance(table, dict)]
    return PlanTables(
        service if isinstance(service, dict) else {},
        {str(table.get("name", table.get("type"))): table for table in tables},
        {str(table.get("name")): table for table in needed},
    )


def _listed(plan: Mapping[str, Any], key: str) -> list[Any]:
    found = plan.get(key)
    return found if isinstance(found, list) else []


def _set(layer: Facts) -> Facts:
    """A layer without the keys that have no value: a later version of Tare may have more."""
    return {key: value for key, value in layer.items() if value is not None}


def _text(value: object) -> str:
    text = "none" if value in (None, "", []) else " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
