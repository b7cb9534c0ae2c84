# SPDX-License-Identifier: Apache-2.0
"""Tare's library-level hook around the service's command."""

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import TareError
from tare.lab.environments.launch import Launch
from tare.lab.layers.costs import counted
from tare.native import native
from tare.plan import expected
from tare.plan.schema.layers import HookLayer

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAM = native("bin", "tare-hook")


def check(layer: HookLayer, plan_folder: Path) -> None:
    """Refuses rules that the hook refuses. Raises TareError without a built tare-hook."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")
    if layer.rules is not None and not (plan_folder / layer.rules).is_file():
        raise expected(f"a file: {plan_folder / layer.rules} does not exist", "rules")
    if layer.rules is not None and (why := _refused_rules(plan_folder / layer.rules)):
        raise expected(f"rules of the hook ({why})", "rules")


def _refused_rules(file: Path) -> str | None:
    """Why the hook refuses the rules of a file; None if it takes them."""
    command = [PROGRAM, "--rules", str(file), "--", "true"]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    return done.stderr.strip().removeprefix("tare-hook: ") if done.returncode == 2 else None


def put(layer: HookLayer, launch: Launch) -> None:
    """Runs the command under tare-hook, which writes its own cost when the service ends."""
    launch.costs["hook"] = launch.folder / "costs-hook.arrow"
    words = [PROGRAM, "--costs", str(launch.costs["hook"])]
    if layer.rules is not None:
        words += ["--rules", str(launch.plan_folder / layer.rules)]
    launch.command = [*words, "--", *launch.command]


def invalid_reason(costs: "pa.Table | None") -> str | None:
    """Why the layer was not there, by the `costs` that it wrote; None where it was.

    A wrapper that does not pass the environment on leaves the service without the hook, while
    the wrapper itself has it.
    """
    if costs is not None and counted(costs, "calls_socket"):
        return None
    return (
        "the hook recorded no socket call, so it was not loaded into the service: check whether"
        " the service is linked statically, or whether a layer clears LD_PRELOAD"
    )
