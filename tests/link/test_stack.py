# SPDX-License-Identifier: Apache-2.0
"""Calls on the small stacks that signal handlers and coroutines have."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled

LARGEST = 11 << 10


def used(out: str) -> dict[str, int]:
    return {name: int(number) for name, number in map(str.split, out.splitlines())}


@pytest.mark.parametrize("eager", [True, False])
def test_no_call_takes_more_than_eleven_kilobytes_of_stack(eager: bool) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    source = Path(__file__).with_name("stack_use.c")
    program = compiled("stack", "cc", "-O1", "-pthread", "-w", "-Wl,-z,now", source, "-o", OUT)
    without = used(subprocess.check_output([program], text=True))
    run = linked.run(str(program), eager=eager)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["links"] > 0
    more = {call: bytes - without[call] for call, bytes in used(run.output).items()}
    assert len(more) == 16
    assert max(more.values()) <= LARGEST, more
