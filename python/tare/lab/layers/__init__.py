# SPDX-License-Identifier: Apache-2.0
"""Layers, one file each: puts what stands between a service and its users in its place."""

from collections.abc import Callable, Iterable
from typing import Any

from tare.lab.launch import Launch
from tare.lab.layers import env, hook, proxy, wrap
from tare.plan.layers import Layer

_LAYERS: dict[str, Callable[[Any, Launch], None]] = {
    "env": env.put,
    "hook": hook.put,
    "proxy": proxy.put,
    "wrap": wrap.put,
}


def put(layers: Iterable[Layer], launch: Launch) -> None:
    """Puts every layer around what `launch` has so far, in the order given.

    Raises RunError where a layer cannot be put there.
    """
    for layer in layers:
        _LAYERS[layer.type](layer, launch)
