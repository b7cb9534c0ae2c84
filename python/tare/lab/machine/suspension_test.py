# SPDX-License-Identifier: Apache-2.0
import os
import signal
import time

import pytest

from tare.lab.machine.suspension import LONGEST_S, Suspension


def test_what_goes_on_has_no_reason() -> None:
    with Suspension() as seen:
        seen.look()
    assert seen.reason is None


def test_a_signal_that_continues_is_seen_and_the_handler_before_is_back() -> None:
    before = signal.getsignal(signal.SIGCONT)
    with Suspension() as seen:
        os.kill(os.getpid(), signal.SIGCONT)
    assert seen.reason == "tare was stopped and continued (SIGSTOP, Ctrl-Z) during the load"
    assert signal.getsignal(signal.SIGCONT) is before


@pytest.mark.parametrize(
    ("clock", "step", "reason"),
    [
        ("monotonic", LONGEST_S + 1, "tare did not run for 3.0 s of the load: no CPU, or frozen"),
        ("clock_gettime", 60.0, "the machine was suspended for 60.0 s during the load"),
    ],
)
def test_clocks_that_went_on_are_seen(
    clock: str, step: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(time, clock)
    with Suspension() as seen:
        monkeypatch.setattr(time, clock, lambda *words: real(*words) + step)
        if clock == "monotonic":  # which stands still itself while a machine is suspended
            boot = time.clock_gettime
            monkeypatch.setattr(time, "clock_gettime", lambda of: boot(of) + step)
        assert seen.reason == reason
