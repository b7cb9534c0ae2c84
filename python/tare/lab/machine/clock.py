# SPDX-License-Identifier: Apache-2.0
"""How far the clock may be from the true time: chronyd knows, else the kernel (adjtimex(2))."""

import ctypes
import os
from contextlib import suppress

from tare.lab.machine.chrony import Chrony
from tare.lab.machine.snapshot import Snapshot

_TIME_ERROR = 5
_STA_UNSYNC = 0x0040
_STA_NANO = 0x2000


class _Timex(ctypes.Structure):
    """struct timex of Linux."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("fraction", ctypes.c_long),
        ("others", ctypes.c_char * 256),
    )


class Clock:
    """Reads offset and error of the clock, as far as a program keeps it synchronized."""

    def __init__(self) -> None:
        self._chrony: Chrony | None = None
        self._call = None
        with suppress(OSError):
            self._chrony = Chrony()
        with suppress(OSError, AttributeError):
            self._call = ctypes.CDLL(None, use_errno=True).adjtimex

    def read(self, snapshot: Snapshot) -> None:
        """Adds `clock_offset`, `clock_error` and `clock_error_limit` in ns.

        A positive offset says that the clock is behind. Without synchronization all are absent:
        then neither offset nor error is known.
        Raises OSError if the call is not permitted.
        """
        if self._chrony is not None and (tracking := self._chrony.tracking()):
            snapshot.level("clock_offset", tracking.offset)
            snapshot.level("clock_error", tracking.error)
            snapshot.level("clock_error_limit", tracking.error_limit)
            return
        found = self.state()
        if found is None:
            return
        snapshot.level("clock_offset", found.offset * (1 if found.status & _STA_NANO else 1000))
        snapshot.level("clock_error", found.esterror * 1000)
        snapshot.level("clock_error_limit", found.maxerror * 1000)

    def state(self) -> "_Timex | None":
        """The kernel's state; None if its clock is not synchronized."""
        if self._call is None:
            return None
        state = _Timex()  # modes = 0 changes nothing
        result = self._call(ctypes.byref(state))
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return None if result == _TIME_ERROR or state.status & _STA_UNSYNC else state
