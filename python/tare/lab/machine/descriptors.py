# SPDX-License-Identifier: Apache-2.0
"""How many descriptors processes have open, and how many they may have."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Descriptors:
    """Of one process."""

    pid: int
    open: int
    limit: int


def most_used(pids: Iterable[int], proc: Path = Path("/proc")) -> Descriptors | None:
    """The process that is nearest to its limit; None if none can be read."""
    found = []
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            limits = (proc / f"{pid}/limits").read_text(encoding="utf-8")
            soft = limits.split("Max open files", 1)[1].split()[0]
            if soft != "unlimited":
                number = len(os.listdir(proc / f"{pid}/fd"))  # noqa: PTH208
                found.append(Descriptors(pid, number, int(soft)))
    return max(found, key=lambda process: process.open / max(process.limit, 1), default=None)
