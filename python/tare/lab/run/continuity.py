# SPDX-License-Identifier: Apache-2.0
"""What must not change between the beginning of an experiment and what is resumed of it."""

import hashlib

from tare.errors import InputError
from tare.plan import OwnLoad, Plan
from tare.plan.schema.layers import HookLayer, ProxyLayer
from tare.samples.manifest import MOMENTARY, Manifest

_NEEDED = ("blocks", "experiment", "files", "load", "machine", "order", "placement", "seed")
_MACHINE = ("machine", "architecture", "cpu_model", "cpus")


def file_hashes(plan: Plan) -> dict[str, str]:
    """SHA-256 of every file that layers and load of the plan name: path as written -> hexadecimal.

    Raises InputError for a file that cannot be read.
    """
    named: set[str | None] = set()
    if isinstance(plan.load, OwnLoad):
        named.update(plan.load.files.values())
    for condition in plan.conditions:
        for layer in condition.layers:
            if isinstance(layer, HookLayer):
                named.add(layer.rules)
            elif isinstance(layer, ProxyLayer):
                named.add(layer.config)
    try:
        return {
            name: hashlib.sha256((plan.folder / name).read_bytes()).hexdigest()
            for name in sorted(filter(None, named))
        }
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; the plan needs it") from error


def changes(begun: Manifest, now: Manifest) -> list[str]:
    """What is different of the machine, by the manifest and a manifest made now, a line each.

    Raises InputError where the runs would be of another experiment: on another machine, on
    other CPUs, or with other rules or proxy configurations; or where `begun` lacks something.
    """
    if missing := [key for key in _NEEDED if key not in begun.model_fields_set]:
        raise InputError(f"manifest.json has no {', '.join(missing)}; start a new experiment")
    was, is_now = begun.machine, now.machine
    for key in _MACHINE:
        if was.get(key) != is_now.get(key):
            raise InputError(
                f"began on another machine ({key}: {was.get(key)}, here {is_now.get(key)});"
                " resume it there, or start a new experiment"
            )
    for who in ("service", "generator"):
        cpus, now_on = begun.placement.get(who), now.placement.get(who)
        if cpus != now_on:
            raise InputError(
                f"began with the {who} on CPUs {cpus}, but now only {now_on} can be used; start"
                f" tare with the same CPUs, or start a new experiment"
            )
    for name, content in begun.files.items():
        if content != now.files.get(name):
            raise InputError(
                f"began with another version of {name}; restore it, or start a new experiment"
            )
    return [
        f"resumed with another {key}: was {was.get(key)}, now {is_now.get(key)}"
        for key in sorted({*was, *is_now})
        if key not in MOMENTARY and was.get(key) != is_now.get(key)
    ]
