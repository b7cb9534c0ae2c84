# SPDX-License-Identifier: Apache-2.0
"""What differs between two results besides what was to be compared: each a line of warning."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from tare.samples.manifest import MOMENTARY, Facts, Manifest
from tare.untrusted import PLAN_BYTES, read_bytes

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
    "design": "design",
    "slice_ns": "slice_ns",
    "turns": "turns",
    "environments": "environments",
    "primary": "primary metric",
    "budget": "budget",
    "alpha": "alpha",
}


def differences(
    old: Manifest,
    new: Manifest,
    conditions: Sequence[str],
    old_service: Facts,
    new_service: Facts,
) -> list[str]:
    """What two manifests say differently about the circumstances of `conditions`.

    `old_service` and `new_service` are tables of their plans: see `service`.
    """
    found: list[str] = []
    if old.machine.get("machine") != new.machine.get("machine"):
        found.append(
            "another machine: the difference between machines cannot be separated from the"
            " service's"
        )
    changed: list[tuple[str, object, object]] = []
    for name, (called, ignored) in _TABLES.items():
        was, now = getattr(old, name, old_service), getattr(new, name, new_service)
        keys = sorted({*was, *now} - ignored)
        changed += ((called.format(key), was.get(key), now.get(key)) for key in keys)
    changed += ((called, getattr(old, key), getattr(new, key)) for key, called in _SETTINGS.items())
    layers = [{one.name: one.layers for one in manifest.conditions} for manifest in (old, new)]
    changed += (
        (f"layers of '{name}'", layers[0].get(name), layers[1].get(name)) for name in conditions
    )
    return found + [
        f"another {what}: {_text(was)} (old), {_text(now)} (new)"
        for what, was, now in changed
        if was != now
    ]


def service(folder: Path) -> Facts:
    """The table `service` of a result's plan; empty where the plan cannot be read."""
    try:
        plan = tomllib.loads(read_bytes(folder / "plan.toml", PLAN_BYTES).decode())
    except (OSError, ValueError, RecursionError):
        return {}
    found = plan.get("service")
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    text = "none" if value in (None, "", []) else " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
