# SPDX-License-Identifier: Apache-2.0
"""How far two clocks are apart, from calls between them.

A call is recorded by the caller's clock and by the clock of the program that is called. Its work
begins after the call began and ends before the call ended, so each call bounds the offset of the
clocks from both sides. The offset that most calls allow is found as NTP does (Marzullo and Owicki
1983; RFC 5905, section 11.2.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]

ODD = 0.05
"""The share of calls that may contradict an offset: callers that gave up waiting, for example."""
FEWEST = 20
"""Calls of a part with an offset of its own, if the clocks do not keep one distance."""


@dataclass(frozen=True)
class Offset:
    """The offset in ns of some consecutive calls, from `first` on: between `low` and `high`."""

    first: int
    low: int
    high: int

    @property
    def middle(self) -> int:
        """The best guess if requests and replies take equally long."""
        return (self.low + self.high) // 2


def offsets(low: Times, high: Times) -> list[Offset] | None:
    """The offsets that calls (n,), in order of time, allow from `low` to `high` in ns.

    If no offset fits nearly all calls, each half has its own, and so on: clocks drift, and are set.
    None if too many calls are in parts of `FEWEST` calls without such an offset. Bounds with `low`
    above `high` allow nothing.
    """
    parts = [*_parts(low, high, 0)]
    fitting = sum(calls for _, calls in parts)
    return [offset for offset, _ in parts] if fitting >= (1 - ODD) * low.size > 0 else None


def _parts(low: Times, high: Times, first: int) -> Iterator[tuple[Offset, int]]:
    """Parts with an offset, and their numbers of calls."""
    start, end, calls = _most_common(low, high)
    middle = low.size // 2
    if calls >= (1 - ODD) * low.size > 0:
        yield Offset(first, start, end), low.size
    elif middle >= FEWEST:
        yield from _parts(low[:middle], high[:middle], first)
        yield from _parts(low[middle:], high[middle:], first + middle)


def _most_common(low: Times, high: Times) -> tuple[int, int, int]:
    """The interval that most intervals have in common, and how many: Marzullo's algorithm."""
    sound = low <= high
    low, high = low[sound], high[sound]
    if not low.size:
        return 0, 0, 0
    at = np.concatenate([low, high])
    step = np.repeat([1, -1], low.size)
    order = np.lexsort((-step, at))
    depth = np.cumsum(step[order])
    best = int(depth.argmax())
    return int(at[order[best]]), int(at[order[best + 1]]), int(depth[best])
