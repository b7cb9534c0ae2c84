# SPDX-License-Identifier: Apache-2.0
"""Tare's library-level hook around the service's command."""

from tare.lab.launch import Launch, RunError
from tare.native import native
from tare.plan.layers import HookLayer

PROGRAM = native("bin", "tare-hook")


def put(layer: HookLayer, launch: Launch) -> None:
    """Runs the command under tare-hook, which writes its own cost when the service ends."""
    if launch.costs is not None:
        raise RunError("a condition bears one hook layer, and this one has two")
    launch.costs = launch.folder / "costs.arrow"
    words = [PROGRAM, "--costs", str(launch.costs)]
    if layer.rules is not None:
        words += ["--rules", str(launch.plan_folder / layer.rules)]
    launch.command = [*words, "--", *launch.command]
