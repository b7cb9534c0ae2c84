# SPDX-License-Identifier: Apache-2.0
"""Any command that is put before the service's own."""

from tare.lab.environments.launch import Launch
from tare.plan.schema.layers import WrapLayer


def put(layer: WrapLayer, launch: Launch) -> None:
    """Puts the words before the command."""
    launch.command = [*map(launch.filled, layer.command), *launch.command]
