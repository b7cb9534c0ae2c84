# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import time

import pytest

from tare.lab.machine.chrony import Chrony, Tracking
from tare.lab.machine.clock import Clock, _Timex
from tare.lab.machine.snapshot import Snapshot


def answering(monkeypatch: pytest.MonkeyPatch, result: int, **fields: int) -> Clock:
    """A clock whose kernel gives this state."""
    clock = Clock()
    monkeypatch.setattr(clock, "_chrony", None)

    def call(state: ctypes.c_void_p) -> int:
        for name, value in fields.items():
            setattr(ctypes.cast(state, ctypes.POINTER(_Timex)).contents, name, value)
        return result

    monkeypatch.setattr(clock, "_call", call)
    return clock


def levels(of: Clock) -> dict[str, float]:
    snapshot = Snapshot()
    of.read(snapshot)
    return snapshot.levels


@pytest.mark.parametrize(("status", "offset_ns"), [(0x2001, -1500), (0x0001, -1_500_000)])
def test_offset_and_errors_are_in_nanoseconds(
    monkeypatch: pytest.MonkeyPatch, status: int, offset_ns: int
) -> None:
    clock = answering(monkeypatch, 0, offset=-1500, esterror=20, maxerror=80, status=status)
    assert levels(clock) == {
        "clock_offset": offset_ns, "clock_error": 20_000, "clock_error_limit": 80_000,
    }  # fmt: skip


@pytest.mark.parametrize(("result", "status"), [(5, 0x2001), (0, 0x2041)])
def test_a_clock_that_nothing_synchronizes_has_no_error(
    monkeypatch: pytest.MonkeyPatch, result: int, status: int
) -> None:
    assert levels(answering(monkeypatch, result, maxerror=16_000_000, status=status)) == {}


def test_a_call_that_is_not_permitted_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EPERM)
    with pytest.raises(PermissionError, match="not permitted"):
        levels(answering(monkeypatch, -1))


def test_a_libc_without_the_call_has_no_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    clock = Clock()
    monkeypatch.setattr(clock, "_chrony", None)
    assert levels(clock) == {}


def test_chronyd_knows_more_than_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = answering(monkeypatch, 0, offset=7, status=0x2001)
    monkeypatch.setattr(clock, "_chrony", Chrony())
    monkeypatch.setattr(Chrony, "tracking", lambda _: Tracking(-3.0, 2.0, 9.0))
    assert levels(clock) == {"clock_offset": -3.0, "clock_error": 2.0, "clock_error_limit": 9.0}
    monkeypatch.setattr(Chrony, "tracking", lambda _: None)
    assert levels(clock)["clock_offset"] == 7


def test_this_kernels_answer_has_the_form_that_is_read() -> None:
    call = ctypes.CDLL(None).adjtimex
    state = _Timex()
    before = time.time()
    assert call(ctypes.byref(state)) in range(6)
    assert before - 1 <= state.seconds <= time.time() + 1
    assert 0 <= state.maxerror <= 16_000_000
