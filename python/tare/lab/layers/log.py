# SPDX-License-Identifier: Apache-2.0
"""Tare's event log around the service's command."""

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import TareError
from tare.lab.environments.launch import Launch
from tare.lab.layers.costs import counted
from tare.native import native
from tare.plan.schema.layers import LogLayer

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAM = native("bin", "tare-log")
AGENT = native("java", "tare-log-agent.jar")


def check(layer: LogLayer, _plan_folder: Path) -> None:
    """Raises TareError where tare-log, or the agent that is asked for, is not built."""
    for path in (PROGRAM, *([] if layer.agent is None else [AGENT])):
        if not Path(path).is_file():
            raise TareError(f"{path}: missing; build the native parts with 'make native'")


def put(layer: LogLayer, launch: Launch) -> None:
    """Runs the command under tare-log, which writes its own cost when the service ends."""
    launch.costs["log"] = launch.folder / "costs-log.arrow"
    words = [PROGRAM, "run", "--out", str(launch.folder / "events.log"), "--codec", layer.codec]
    words += ["--workers", str(layer.workers), "--clock", layer.clock]
    words += ["--costs", str(launch.costs["log"])]
    launch.command = [*words, "--", *launch.command]
    if layer.agent is not None:
        launch.add_java_agent(f"{AGENT}={launch.filled(layer.agent)}")


def invalid_reason(costs: "pa.Table | None") -> str | None:
    """Why the layer was not there, by the `costs` that it wrote; None where it was."""
    if costs is not None and counted(costs, "programs_attached"):
        return None
    return (
        "no program logged events: check whether the service logs with tare log, or whether a"
        " layer clears TARE_LOG"
    )
