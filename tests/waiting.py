# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another process does."""

import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 300
"""Longer than anything takes that a test waits for, on the busiest machine."""


def wait_for(come: Callable[[], object], what: str = "it") -> None:
    """Waits until something has come true, and fails where that takes longer than any machine.

    A file that it looks at and that is not there yet, or a port where nobody listens or answers
    yet, has not come either.
    """
    begin = time.monotonic()
    while not _has(come):
        waited = time.monotonic() - begin
        assert waited < SECONDS, f"{what} has not come in {SECONDS} s"
        # The longer it takes, the less does it cost to look less often.
        time.sleep(min(max(0.005, waited / 20), 0.05))


def _has(come: Callable[[], object]) -> bool:
    try:
        return bool(come())
    except (FileNotFoundError, ConnectionError):
        return False


def is_running(pid: int) -> bool:
    """Whether a process lives. A zombie does not: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it may end between the opening of the file and its reading
        return False
