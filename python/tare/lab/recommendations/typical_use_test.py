# SPDX-License-Identifier: Apache-2.0
"""What hooked functions are called for, counted by the real hook in small programs."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tare.lab.recommendations.seen import Seen
from tare.lab.recommendations.typical_use import call_mix, judge
from tare.lab.result.streams import read_stream
from tare.native import native

if TYPE_CHECKING:
    import pyarrow as pa

Make = Callable[..., Seen]
HOOK, TEXT = '{ type = "hook" }', 'typical_use = "answers requests"\n'
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


def test_declared_uses_occur(seen: Make, tmp_path: Path) -> None:
    costs = hooked(SOCKETS, tmp_path)
    answer = judge(seen(other=HOOK, stated=f'{TEXT}uses = ["sockets", "files"]', costs=costs))
    assert answer is not None
    assert answer.word == "kept", answer
    assert any("on sockets" in line for line in answer.evidence)


def test_a_use_that_does_not_occur_is_broken(seen: Make, tmp_path: Path) -> None:
    costs = hooked(FILES, tmp_path)
    answer = judge(seen(other=HOOK, stated=TEXT, costs=costs))
    assert answer is not None
    assert answer.word == "broken"
    assert "typical use (sockets): no call of the load is on sockets" in answer.evidence
    assert costs["hook"] is not None
    mix = call_mix(costs["hook"])
    assert not any(calls["sockets"] for calls in mix.values())


@pytest.mark.parametrize(("stated", "word"), [(TEXT, "kept"), ("", "broken")])
def test_the_typical_use_is_described(stated: str, word: str, seen: Make) -> None:
    answer = judge(seen(stated=stated))
    assert answer is not None
    assert answer.word == word


def test_a_run_without_hook_leaves_the_answer_to_those_with_one(seen: Make) -> None:
    assert judge(seen(other=HOOK, stated=TEXT)) is None
