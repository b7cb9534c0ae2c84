# SPDX-License-Identifier: Apache-2.0
"""The plan of one of the services that a plan's service needs, under load by itself."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from tare.plan.schema.plan import Plan
from tare.plan.schema.services import NeededService, Service
from tare.plan.schema.values import expected
from tare.plan.text.parser import parse, refused
from tare.plan.text.toml_text import toml_text

_LONGEST_NAME = 64
WHOLE_MACHINE = ("agent", "map")
"""Types of layers that are at no service."""
Table = Mapping[str, Any]


def isolated(plan: Plan, name: str) -> Plan:
    """The plan with the load on one of `services`, and without what it does not need.

    It keeps the rate, so that the service has as many requests as in the whole application. Raises
    InputError if there is no such service, or no way to load it.
    """
    by_name = {service.name: service for service in plan.services}
    if name not in by_name:
        known = ", ".join(by_name) or "nothing"
        wanted = f"a service {name} (it has {known}; without --isolate, [service] has the load)"
        raise refused(plan, ("services",), expected(wanted))
    chosen = by_name[name]
    number = plan.services.index(chosen)
    _require_load(plan, chosen, number)
    needed = _needed(chosen, by_name)
    data = tomllib.loads(plan.text)
    table = {
        key: value for key, value in data["services"][number].items() if key not in ("name", "path")
    }
    others = [service for service in data["services"] if service["name"] in needed]
    conditions = [_condition(condition, name, needed) for condition in data["conditions"]]
    _require_difference(plan, name, conditions)
    changed = {
        "name": f"{plan.name}-{name}"[:_LONGEST_NAME],
        "service": table,
        "services": others,
        "load": {**data.get("load", {}), "path": chosen.path},
        "conditions": conditions,
    }
    return parse(toml_text({**data, **changed}), plan.source[0], plan.folder)


def left_out(plan: Plan, name: str) -> list[str]:
    """A line for each layer that `isolated` leaves out, because its service does not run."""
    by_name = {service.name: service for service in plan.services}
    kept = {name, *_needed(by_name[name], by_name)}
    return [
        f"--isolate {name}: condition '{condition['name']}' is measured without the layer"
        f" {layer['type']} at {layer.get('at', '[service]')}, which does not run"
        for condition in tomllib.loads(plan.text)["conditions"]
        for layer in condition.get("layers", [])
        if layer.get("at") not in kept and layer["type"] not in WHOLE_MACHINE
    ]


def _require_difference(plan: Plan, name: str, conditions: Sequence[Table]) -> None:
    """Refuses conditions that differ only by layers of services that do not run."""
    first, *others = (condition.get("layers", []) for condition in conditions)
    differed = plan.compare == "conditions" and any(
        condition.layers for condition in plan.conditions
    )
    if differed and others and all(layers == first for layers in others):
        wanted = (
            f"a layer at {name} or at a service that it needs: with --isolate {name}, all"
            " conditions are equal"
        )
        raise refused(plan, ("conditions", 1, "layers"), expected(wanted))


def _require_load(plan: Plan, service: NeededService, number: int) -> None:
    place = ("services", number)
    if service.path is None:
        wanted = 'a path that the load requests of it, such as path = "/users/1"'
        raise refused(plan, (*place, "path"), expected(wanted))
    if service.replicas > 1:
        raise refused(plan, (*place, "replicas"), expected("no replicas with --isolate"))
    if plan.load.needs_capacity:
        wanted = "requests/s with --isolate: the capacity of the whole application is unknown"
        raise refused(plan, ("load", "rate"), expected(wanted))
    if plan.load.type == "tcp":
        raise refused(plan, ("load", "type"), expected("another type than tcp with --isolate"))


def _needed(service: Service, by_name: Mapping[str, NeededService]) -> set[str]:
    """The services that a service needs, and those that these need."""
    named = service.needs & by_name.keys()
    return named.union(*(_needed(by_name[name], by_name) for name in named))


def _condition(table: Table, name: str, needed: set[str]) -> dict[str, Any]:
    """A condition with the layers of the service, of what it needs, and of the whole machine."""
    layers = []
    for layer in table.get("layers", []):
        if layer.get("at") == name:
            alone = {key: value for key, value in layer.items() if key != "at"}
            # Its spans keep their name.
            layers.append({"service": name, **alone} if layer["type"] == "spans" else alone)
        elif layer.get("at") in needed or layer["type"] in WHOLE_MACHINE:
            layers.append(layer)
    return {**table, "layers": layers}
