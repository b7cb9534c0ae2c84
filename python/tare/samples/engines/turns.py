# SPDX-License-Identifier: Apache-2.0
"""Distances computed by several threads, which take the pieces of a stream in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tare.samples.engines.exact import Counts
    from tare.stats.distances import Pairs

AHEAD = 4
"""Pieces that may wait: what is ahead of the threads costs memory."""


class Turns:
    """Gives every piece to one of `pairs` and lets the others skip it.

    Who takes which piece does not hang on who is quicker: the result is the same each time.
    """

    def __init__(self, pairs: Sequence[Pairs]) -> None:
        self._pairs = pairs
        # One thread each, so that each sees all pieces in their order.
        self._threads = [ThreadPoolExecutor(1) for _ in pairs]
        self._waiting: deque[list[Future[None]]] = deque()
        self._turn = 0

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)

    def add(self, counts: Counts) -> None:
        """Takes the next piece. Raises what went wrong with an earlier one."""
        self._waiting.append(
            [
                thread.submit(pairs.add if place == self._turn else pairs.skip, *counts)
                for place, (thread, pairs) in enumerate(
                    zip(self._threads, self._pairs, strict=True)
                )
            ]
        )
        self._turn = (self._turn + 1) % len(self._pairs)
        self._wait(AHEAD)

    def merged(self) -> Pairs:
        """What all of them found, when all pieces have been looked at."""
        self._wait(0)
        whole, *others = self._pairs
        for other in others:
            whole.merge(other)
        return whole

    def _wait(self, most: int) -> None:
        while len(self._waiting) > most:
            for done in self._waiting.popleft():
                done.result()
