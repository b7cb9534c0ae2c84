# SPDX-License-Identifier: Apache-2.0
"""A result's manifest.json as it is, or in one line what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tare.errors import InputError

NAME = "manifest.json"
MOMENTARY = frozenset(
    ("pressure_cpu", "pressure_io", "pressure_memory", "steal_now", "steal_since_boot")
)
"""Readings of the machine that are another every moment."""
_NUMBER = (int, float)
_NAMES = {str: "a text", int: "a whole number", bool: "true or false", list: "a list"}
_EXPECTED: dict[str, Any] = {
    "baseline": str,
    "budget": _NUMBER,
    "control": str,
    "runs": list,
    "name": str,
    "experiment": str,
    "design": str,
    "primary": str,
    "alpha": _NUMBER,
    "blocks": int,
    "smoke": bool,
    "looks": list,
    "conditions": list,
    "environments": list,
    "warnings": list,
    "machine": dict,
    "limits": list,
}
_OF_A_RUN: dict[str, Any] = {
    "run": int,
    "block": int,
    "environment": str,
    "condition": str,
    "valid": bool,
    "reason": str,
    "started_ns": int,
    "duration_ns": int,
    "requests": int,
    "errors": int,
    "endpoint": str,
    "cpu": dict,
}
_OF_A_LIMIT: dict[str, Any] = {
    "environment": str,
    "span": str,
    "statistic": str,
    "undetected_ns": _NUMBER,
    "shares": dict,
    "date": str,
}
_OF_EVERY_LIMIT = tuple(key for key in _OF_A_LIMIT if key != "undetected_ns")
"""Where false alarms hid the limit, it is null."""
_OF_CPU: dict[str, Any] = {"service_ns_per_request": _NUMBER, "generator_ns_per_request": _NUMBER}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a result folder; keys that are null are left out, unknown ones stay.

    Raises InputError where there is none, or where what Tare reads from it has another type.
    """
    path = folder / NAME
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: no such file; name a result folder of 'tare run'") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    manifest = _checked(path, "the manifest", manifest, _EXPECTED, ("runs", "baseline", "budget"))
    needed = ("run", "block", "environment", "condition", "valid")
    runs = []
    for place, entry in enumerate(manifest["runs"], start=1):
        run = _checked(path, f"entry {place} of runs", entry, _OF_A_RUN, needed)
        _checked(path, f"cpu of run {run['run']}", run.get("cpu") or {}, _OF_CPU, ())
        runs.append(run)
    numbers = [run["run"] for run in runs]
    if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
        raise InputError(f"{path}: run {twice[0]} stands there twice; remove one of them")
    for place, limit in enumerate(manifest.get("limits", ()), start=1):
        _checked(path, f"entry {place} of limits", limit, _OF_A_LIMIT, _OF_EVERY_LIMIT)
    for place, condition in enumerate(manifest.get("conditions", ()), start=1):
        what = f"entry {place} of conditions"
        layers = _checked(path, what, condition, {"name": str, "layers": list}, ("name",))
        for layer in layers.get("layers", ()):
            _checked(path, f"a layer of {what}", layer, {"type": str}, ())
    looks = manifest.get("looks", [])
    if not all(type(look) is int and look > 0 for look in looks) or looks != sorted({*looks}):
        wanted = "growing numbers of blocks"
        raise InputError(f"{path}: looks of the manifest is {_shown(looks)}, expected {wanted}")
    return manifest | {"runs": runs}


def _checked(
    path: Path, what: str, found: object, expected: Mapping[str, Any], needed: tuple[str, ...]
) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError(f"{path}: {what} is {_shown(found)}, expected keys and values")
    known = {key: value for key, value in found.items() if value is not None}
    if missing := [key for key in needed if key not in known]:
        raise InputError(f"{path}: no {', '.join(missing)} in {what}; it is not of 'tare run'")
    for key, kind in expected.items():
        value = known.get(key)
        if value is not None and not isinstance(value, kind):
            wanted = _NAMES.get(kind, "keys and values" if kind is dict else "a number")
            raise InputError(f"{path}: {key} of {what} is {_shown(value)}, expected {wanted}")
    return known


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
