# SPDX-License-Identifier: Apache-2.0
"""Several ends of the warm-up, told apart by one number beside each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tare.samples.sql.column import functions_of
from tare.samples.sql.group_numbers import Group, of_group, settled

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

WarmUpEnd = Mapping[Group, int]
"""The first place of each run and span that counts; 0 where none is given."""


class WarmUpEnds:
    """Where each of several descriptions of the same requests begins."""

    def __init__(self, begins: Sequence[WarmUpEnd]) -> None:
        groups = {group for begin in begins for group in begin}
        whole = [{group: begin.get(group, 0) for group in groups} for begin in begins]
        self._earliest = {group: min(begin[group] for begin in whole) for group in groups}
        self._later = [begin for begin in whole if begin != self._earliest]
        places = iter(range(len(self._later)))
        self._bit = [None if begin == self._earliest else next(places) for begin in whole]

    @property
    def bits(self) -> int:
        """How many bits `reached` has."""
        return len(self._later)

    @property
    def count(self) -> int:
        """How many descriptions are wanted."""
        return len(self._bit)

    def of(self, group: Group) -> tuple[int, list[int]]:
        """The first place of a run and span that any of them has, and of each bit of `reached`."""
        return self._earliest.get(group, 0), [begin.get(group, 0) for begin in self._later]

    def marked(self, samples: Table) -> Table:
        """The requests that any of them has, with `reached`: which of them have it, bit by bit.

        `samples` need not have `place` where all begin at 0.
        """
        sql = functions_of(samples)
        reached: Any = sql.literal(0, "int64")
        for bit, begin in enumerate(self._later):
            beyond: Any = samples.place >= of_group(samples, begin)
            reached = reached + beyond.ifelse(1 << bit, 0)
        return settled(samples.mutate(reached=reached), self._earliest)

    def has_all(self, which: int) -> bool:
        """Whether the description has all requests that `marked` returns."""
        return self._bit[which] is None

    def has(self, which: int, reached: Any) -> Any:
        """Whether the description has requests of this `reached`: a number, or an array (n,)."""
        bit = self._bit[which]
        return reached >= 0 if bit is None else (reached >> bit) & 1 == 1
