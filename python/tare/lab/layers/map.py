# SPDX-License-Identifier: Apache-2.0
"""Tare's tracer of sockets, as an agent that is switched on and off in turns."""

from pathlib import Path

from tare.errors import TareError
from tare.native import native
from tare.plan.schema.layers import AgentLayer, MapLayer

PROGRAM = native("bin", "tare-map")


def check(_layer: MapLayer, _plan_folder: Path) -> None:
    """Raises TareError without a built tare-map."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")


def agent(layer: MapLayer) -> AgentLayer:
    """The tracer; it is ready when it has printed its first reading."""
    words = [PROGRAM, "--jsonl", "--interval", f"{max(layer.interval // 10**6, 1)}ms"]
    return AgentLayer(
        type="agent",
        name="map",
        start=[*words, "--max-edges", str(layer.max_edges), "--method", layer.method],
        ready=["test", "-s", "{log}"],
        stop_signal="INT",
    )
