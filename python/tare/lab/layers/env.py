# SPDX-License-Identifier: Apache-2.0
"""Any variables in the service's environment."""

from tare.lab.environments.launch import Launch
from tare.plan.schema.layers import EnvLayer


def put(layer: EnvLayer, launch: Launch) -> None:
    """Sets the variables for the service and for every command around it."""
    launch.variables |= {name: launch.filled(text) for name, text in layer.variables.items()}
