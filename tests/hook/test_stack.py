# SPDX-License-Identifier: Apache-2.0
"""Calls on the small stacks that signal handlers have."""

from pathlib import Path

from tests.hook.conftest import CASES
from tests.hook.hooked import hooked, plain, rules
from tests.hook.programs.ways import need
from tests.once import OUT, compiled

LARGEST = 2560
RULES = rules("needle", direction="both", scope="all") + rules("forbidden", action="block")


def used(out: str) -> dict[str, int]:
    return {name: int(number) for name, number in map(str.split, out.splitlines())}


def test_no_call_takes_more_than_two_and_a_half_kilobytes_of_stack(tmp_path: Path) -> None:
    need("cc")
    source = CASES.parent / "library" / "stack.c"
    program = compiled("stack", "cc", "-O1", "-pthread", "-w", "-Wl,-z,now", "-o", OUT, source)
    without = used(plain([program], tmp_path).out)
    seen = hooked([program], tmp_path, RULES)
    assert len(seen.events) > 1_000
    more = {call: bytes - without[call] for call, bytes in used(seen.behaviour.out).items()}
    assert len(more) == 20
    assert max(more.values()) <= LARGEST, more
