# SPDX-License-Identifier: Apache-2.0
"""Layers, one file each: puts what stands between a service and its users in its place."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from tare.lab.environments.launch import Launch
from tare.lab.layers import env, hook, link, log, map, proxy, spans, wrap
from tare.plan import Plan, refused
from tare.plan.schema.layers import Layer

if TYPE_CHECKING:
    import pyarrow as pa

_LAYERS: dict[str, Callable[[Any, Launch], None]] = {
    "env": env.put,
    "hook": hook.put,
    "link": link.put,
    "log": log.put,
    "proxy": proxy.put,
    "spans": spans.put,
    "wrap": wrap.put,
}

_CHECKS: dict[str, Callable[[Any, Path], None]] = {
    "hook": hook.check,
    "link": link.check,
    "log": log.check,
    "map": map.check,
    "proxy": proxy.check,
    "spans": spans.check,
}

_INVALID_REASONS: dict[str, Callable[["pa.Table | None"], str | None]] = {
    "hook": hook.invalid_reason,
    "link": link.invalid_reason,
    "log": log.invalid_reason,
    "spans": spans.invalid_reason,
}


def check(plan: Plan) -> None:
    """Raises InputError, with its place in the plan, for a layer that cannot be put here."""
    for number, condition in enumerate(plan.conditions):
        for position, layer in enumerate(condition.layers):
            if layer.type in _CHECKS:
                try:
                    _CHECKS[layer.type](layer, plan.folder)
                except PydanticCustomError as error:
                    place = ("conditions", number, "layers", position)
                    raise refused(plan, place, error) from error


def put(layers: Iterable[Layer], launch: Launch) -> None:
    """Puts every layer around what `launch` has so far, in the order given.

    Raises RunError where a layer cannot be put there.
    """
    for layer in layers:
        _LAYERS[layer.type](layer, launch)


def invalid_reason(name: str, costs: "pa.Table | None") -> str | None:
    """Why a layer that says what it cost was not in the service; None where it was.

    The name is the layer's type, and behind a blank the proxy that has it.
    """
    return _INVALID_REASONS[name.partition(" ")[0]](costs)
