# SPDX-License-Identifier: Apache-2.0
"""What differs between two results besides what was to be compared: each a line of warning."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tare.samples.manifest import MOMENTARY

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
    "environments": "environments",
    "primary": "primary metric",
    "budget": "budget",
    "alpha": "alpha",
}


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], conditions: Sequence[str]
) -> list[str]:
    """What two manifests say differently about the circumstances of `conditions`.

    `service` in a manifest is the plan's table of that name: see `with_service`.
    """
    found: list[str] = []
    if _table(old, "machine").get("machine") != _table(new, "machine").get("machine"):
        found.append("another machine: its difference cannot be told from that of the service")
    changed: list[tuple[str, Any, Any]] = []
    for name, (called, ignored) in _TABLES.items():
        was, now = _table(old, name), _table(new, name)
        keys = sorted({*was, *now} - ignored)
        changed += ((called.format(key), was.get(key), now.get(key)) for key in keys)
    changed += ((called, old.get(key), new.get(key)) for key, called in _SETTINGS.items())
    layers = [_layers(manifest) for manifest in (old, new)]
    changed += (
        (f"layers of '{name}'", layers[0].get(name), layers[1].get(name)) for name in conditions
    )
    return found + [
        f"another {what}: {_text(was)} (old), {_text(now)} (new)"
        for what, was, now in changed
        if was != now
    ]


def with_service(manifest: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The manifest of a result folder with its plan's `service`, where the plan can be read."""
    try:
        plan = tomllib.loads((folder / "plan.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return dict(manifest)
    return {**manifest, "service": plan.get("service")}


def _table(manifest: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _layers(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("layers") for one in manifest.get("conditions") or ()}


def _text(value: object) -> str:
    text = "none" if value is None else " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
