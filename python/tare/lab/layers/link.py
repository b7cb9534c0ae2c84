# SPDX-License-Identifier: Apache-2.0
"""Tare's link around the service's command, and around the load generator at the other end."""

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import TareError
from tare.lab.launch import Launch
from tare.lab.layers.costs import counted
from tare.native import native
from tare.plan.layers import LinkLayer

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAM = native("bin", "tare-link")


def check(_layer: LinkLayer, _plan_folder: Path) -> None:
    """Raises TareError without a built tare-link."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")


def put(layer: LinkLayer, launch: Launch) -> None:
    """Runs the command under tare-link, which writes what it counted when the service ends.

    The load generator runs under tare-link, too. Its connections to services without the layer
    stay TCP, in the same process: slices of both compare like with like.
    """
    words = [PROGRAM, *(["--eager"] if layer.eager else [])]
    launch.costs["link"] = launch.folder / "costs-link.arrow"
    launch.command = [*words, "--costs", str(launch.costs["link"]), "--", *launch.command]
    launch.around_load = [*words, "--"]


def why_not(costs: "pa.Table | None") -> str | None:
    """Why the layer was not there, by the `costs` that it wrote; None where it was."""
    if costs is None or not counted(costs, "programs"):
        return (
            "the library of tare link was not loaded into the service: check whether"
            " 'tare link check' accepts the service, or whether a layer clears LD_PRELOAD"
        )
    if not counted(costs, "ring_bytes_received"):
        return (
            "no connection of the service used shared memory: a connection of one request stays"
            " TCP unless the layer has eager = true, and proxies are not linked"
        )
    return None
