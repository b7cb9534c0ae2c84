# SPDX-License-Identifier: Apache-2.0
"""A signal handler uses a connection between any two instructions of a call of the same thread."""

import platform
from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled

SOURCE = Path(__file__).parent / "single_steps.c"
# Instructions between two places: a call has thousands. A thread waits for a handler that has the
# lock of the connection in `waits`, and in `changes` the other end does.
STEPS = {"both": 7, "changes": 11, "peek": 1, "waits": 23, "sends": 7}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", STEPS)
def test_handler_and_the_call_that_it_interrupts_get_the_bytes_in_order(case: str) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("the flag that stops the processor behind each instruction is of x86-64")
    steps = str(compiled("single_steps", "cc", "-O1", "-w", "-pthread", "-o", OUT, SOURCE))
    run = linked.run(steps, case, str(STEPS[case]))
    assert (run.code, run.errors) == (0, "")
    assert (run.counts["links"], run.counts["reset"]) == (2, 0)
    # How many instructions a call has depends on what libc copies with on this processor.
    assert run.counts["ring_receives"] > 50
    if case == "sends":
        assert run.reasons["downgraded"]["handler"] > 0
