# SPDX-License-Identifier: Apache-2.0
"""Tare's link around the service's command, and around the load generator at the other end."""

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import TareError
from tare.lab.environments.launch import Launch
from tare.lab.layers.costs import counted
from tare.native import native
from tare.plan.schema.layers import LinkLayer, ProxyLayer

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAM = native("bin", "tare-link")


def check(_layer: LinkLayer | ProxyLayer, _plan_folder: Path) -> None:
    """Raises TareError without a built tare-link."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")


def put(layer: LinkLayer, launch: Launch) -> None:
    """Runs the command under tare-link."""
    launch.command = linked(launch.command, launch, "link", eager=layer.eager)


def linked(command: list[str], launch: Launch, name: str, *, eager: bool = False) -> list[str]:
    """The command of a service or proxy under tare-link, which writes what it counted at the end.

    The load generator runs under tare-link, too. Its connections to services without the layer
    stay TCP, in the same process: slices of both compare like with like.
    """
    words = [PROGRAM, *(["--eager"] if eager else [])]
    costs = launch.costs[name] = launch.folder / f"costs-{name.replace(' ', '-')}.arrow"
    if len(words) >= len(launch.around_load):
        launch.around_load = [*words, "--"]
    return [*words, "--costs", str(costs), "--", *command]


def invalid_reason(costs: "pa.Table | None") -> str | None:
    """Why the layer was not there, by the `costs` that it wrote; None where it was."""
    if costs is None or not counted(costs, "programs"):
        return (
            "the library of tare link was not loaded into the service or proxy: check whether"
            " 'tare link check' accepts the program, or whether a layer clears LD_PRELOAD"
        )
    if not counted(costs, "ring_bytes_received"):
        return (
            "no connection of the service or proxy used shared memory: connections of one request"
            " need eager = true (link:eager), a proxy needs link = true, and both ends must run in"
            " one network (the load and a service in netns do not) and as the same user (for nginx"
            " started by root: user root;)"
        )
    return None
