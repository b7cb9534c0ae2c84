# SPDX-License-Identifier: Apache-2.0
"""Tare's library-level hook around the service's command."""

from pathlib import Path

from tare.errors import InputError, TareError
from tare.lab.launch import Launch, RunError
from tare.native import native
from tare.plan.layers import HookLayer

PROGRAM = native("bin", "tare-hook")


def check(layer: HookLayer, plan_folder: Path) -> None:
    """Raises TareError without a built tare-hook, InputError without the rules file."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")
    if layer.rules is not None and not (plan_folder / layer.rules).is_file():
        raise InputError(f"{plan_folder / layer.rules}: no such rules file; see the plan's layers")


def put(layer: HookLayer, launch: Launch) -> None:
    """Runs the command under tare-hook, which writes its own cost when the service ends."""
    if launch.costs is not None:
        raise RunError("a condition bears one hook layer, and this one has two")
    launch.costs = launch.folder / "costs.arrow"
    words = [PROGRAM, "--costs", str(launch.costs)]
    if layer.rules is not None:
        words += ["--rules", str(launch.plan_folder / layer.rules)]
    launch.command = [*words, "--", *launch.command]
