# SPDX-License-Identifier: Apache-2.0
"""What hooked functions are called for, counted by the real hook in small programs."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.typical_use import call_mix, judge
from tare.lab.result.streams import read_stream
from tare.native import native

if TYPE_CHECKING:
    import pyarrow as pa

Make = Callable[..., RunObservations]
HOOK, TEXT = '{ type = "hook" }', 'typical_use = "results requests"\n'
SOCKETS = "import socket; a, b = socket.socketpair(); a.send(b'x'); b.recv(1)"
FILES = "open('/etc/passwd').read()"


def hooked(program: str, folder: Path) -> "dict[str, pa.Table | None]":
    """What the hook wrote of its cost in a program."""
    if not Path(native("bin", "tare-hook")).exists():
        pytest.skip("tare-hook is not built")
    costs = folder / "costs.arrow"
    command = [native("bin", "tare-hook"), "--costs", str(costs), "--"]
    subprocess.run([*command, sys.executable, "-c", program], check=True)
    return {"hook": read_stream(costs)}


def test_declared_uses_occur(observations: Make, tmp_path: Path) -> None:
    costs = hooked(SOCKETS, tmp_path)
    result = judge(
        observations(other=HOOK, stated=f'{TEXT}uses = ["sockets", "files"]', costs=costs)
    )
    assert result is not None
    assert result.status == "kept", result
    assert any("on sockets" in line for line in result.evidence)


def test_a_use_that_does_not_occur_is_broken(observations: Make, tmp_path: Path) -> None:
    costs = hooked(FILES, tmp_path)
    result = judge(observations(other=HOOK, stated=TEXT, costs=costs))
    assert result is not None
    assert result.status == "broken"
    assert "typical use (sockets): no call of the load is on sockets" in result.evidence
    assert costs["hook"] is not None
    mix = call_mix(costs["hook"])
    assert not any(calls["sockets"] for calls in mix.values())


@pytest.mark.parametrize(("stated", "status"), [(TEXT, "kept"), ("", "broken")])
def test_the_typical_use_is_described(stated: str, status: str, observations: Make) -> None:
    result = judge(observations(stated=stated))
    assert result is not None
    assert result.status == status


def test_a_run_without_hook_leaves_the_answer_to_those_with_one(observations: Make) -> None:
    assert judge(observations(other=HOOK, stated=TEXT)) is None
