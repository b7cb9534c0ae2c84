# SPDX-License-Identifier: Apache-2.0
"""Whether everything stood still while a load ran: what was measured then says nothing."""

import signal
import threading
import time
from types import TracebackType
from typing import Self

LONGEST_S = 2.0
"""Between two looks that should be a tenth of a second apart."""
SUSPENDED_S = 0.05


class Suspension:
    """Sees a machine that is suspended, and processes that are stopped by SIGSTOP or Ctrl-Z or
    frozen, while its context lasts. `look` is to be called every tenth of a second."""

    def __init__(self) -> None:
        self._asleep = _asleep_s()
        self._last = time.monotonic()
        self._longest = 0.0
        self._continued = False

    def __enter__(self) -> Self:
        # Only what was stopped is sent SIGCONT. The handler can be set in the main thread alone.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGCONT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCONT, self._before)

    def look(self) -> None:
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last)
        self._last = now

    def restart(self) -> None:
        """Begins to look again: how long the last look was ago does not count."""
        self._last = time.monotonic()

    @property
    def reason(self) -> str | None:
        """What is wrong with the runs of this time, or None."""
        self.look()
        asleep = _asleep_s() - self._asleep
        if asleep > SUSPENDED_S:
            return f"the machine was suspended for {asleep:.1f} s during the load"
        if self._continued:
            return "tare was stopped and continued (SIGSTOP, Ctrl-Z) during the load"
        if self._longest > LONGEST_S:
            return f"tare did not run for {self._longest:.1f} s of the load: no CPU, or frozen"
        return None

    def _note(self, *_: object) -> None:
        self._continued = True


def _asleep_s() -> float:
    """How long the machine has been suspended since it was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
