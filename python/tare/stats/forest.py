# SPDX-License-Identifier: Apache-2.0
"""Traces as trees of spans: where the time of each goes, and which shape it has.

Spans of many traces are arrays (n,), in any order. No step goes span by span: what a
span inherits from its ancestors is found by pointer doubling, which takes the logarithm of the
depth.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

DEEPEST = 20
"""A span has fewer than 2^20 ancestors; if it has more, its parents form a cycle."""
STEP = 0x9E3779B97F4A7C15
"""An odd multiplier with random bits: the golden ratio."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Spans (n,) of trees: the index of each span's parent (-1: none), and its begin and end in
    ns."""

    parent: Places
    begin: Places
    end: Places

    def inherited(self, values: Places, join: Callable[[Places, Places], Places]) -> Places:
        """`join` of the values of each span and all of its ancestors."""
        found, above = values, self.parent
        while (inner := above >= 0).any():
            found = np.where(inner, join(found, found[above]), found)
            above = np.where(inner, above[above], -1)
        return found

    def roots(self) -> Places:
        """The index of each span's root; -1 if its parents form a cycle."""
        found, above = np.arange(self.parent.size), self.parent
        for _ in range(DEEPEST):
            inner = above >= 0
            if not inner.any():
                return found
            found = np.where(inner, found[above], found)
            above = np.where(inner, above[above], -1)
        return np.where(above >= 0, -1, found)

    def select(self, spans: Flags) -> "Forest":
        """Only `spans` (n,); the parents of selected spans must be selected, too."""
        new = np.cumsum(spans) - 1
        parent = self.parent[spans]
        parent = np.where(parent >= 0, new[parent], -1)
        return Forest(parent, self.begin[spans], self.end[spans])

    def within_parents(self) -> "Forest":
        """Each span cut to the time in which all of its ancestors run.

        A call that continues after its caller has returned, or whose clock is late, takes no time
        of the caller then. A span that is completely outside gets the duration 0.
        """
        begin = self.inherited(self.begin, np.maximum)
        end = self.inherited(self.end, np.minimum)
        return Forest(self.parent, begin, np.maximum(begin, end))

    @property
    def duration(self) -> Places:
        """In ns (n,)."""
        return self.end - self.begin


def self_times(forest: Forest) -> Places:
    """The time (n,) in ns of each span in which none of its children runs.

    No span of `forest` is outside of its parent (`within_parents`).
    """
    inner = np.flatnonzero((forest.parent >= 0) & (forest.duration > 0))
    group = np.tile(forest.parent[inner], 2)
    at = np.concatenate([forest.begin[inner], forest.end[inner]])
    step = np.repeat([1, -1], inner.size)
    order = np.lexsort((-step, at, group))
    group, at = group[order], at[order]
    # All children of a parent end, so the count is 0 again where the next parent's children begin.
    busy = np.cumsum(step[order])[:-1] > 0
    covered = np.bincount(group[:-1][busy], weights=np.diff(at)[busy], minlength=forest.parent.size)
    return forest.duration - covered.astype(np.int64)


def critical_times(forest: Forest) -> Places:
    """The time (n,) in ns of each span on the critical path; the times of a tree sum to its root.

    The critical path goes back from the end of the root. If a span is on it, the child that ends
    last is on it, too, then the child that ends last before that child began, and so on. Time that
    no such child covers belongs to the span itself. (CRISP: Zhang et al., USENIX ATC 2022,
    section 3.) No span of `forest` is outside of its parent (`within_parents`).
    """
    chosen = _last_to_end(forest)
    on_path = forest.inherited(chosen.astype(np.int64), np.minimum).astype(bool)
    mine = np.where(on_path, forest.duration, 0)
    below = on_path & (forest.parent >= 0)
    taken = np.bincount(forest.parent[below], weights=forest.duration[below], minlength=mine.size)
    return mine - taken.astype(np.int64)


def _last_to_end(forest: Forest) -> Flags:
    """Which spans their parents wait for; roots count as such spans."""
    chosen = forest.parent < 0
    inner = np.flatnonzero(~chosen & (forest.duration > 0))
    if not inner.size:
        return chosen
    order = inner[np.lexsort((forest.end[inner], forest.parent[inner]))]
    group, number = forest.parent[order], np.arange(order.size)
    # Ends and begins of a parent's children are sorted by time: the last end in front of a begin
    # belongs to the child that ended last before it.
    begins = np.concatenate([np.zeros(order.size, np.int64), np.ones(order.size, np.int64)])
    at = np.concatenate([forest.end[order], forest.begin[order]])
    among = np.lexsort((begins, at, np.tile(group, 2)))
    ended = np.where(begins[among] == 0, np.tile(number, 2)[among], -1)
    last = np.maximum.accumulate(ended)
    before = np.empty(order.size, np.int64)
    is_begin = begins[among] == 1
    before[np.tile(number, 2)[among][is_begin]] = last[is_begin]
    same = (before >= 0) & (group[before] == group)
    before = np.where(same, before, -1)
    now = np.flatnonzero(np.append(group[1:] != group[:-1], True))
    while now.size:
        chosen[order[now]] = True
        now = before[now]
        now = now[now >= 0]
    return chosen


def paths(forest: Forest, kinds: Hashes) -> Hashes:
    """A hash (n,) of the kinds of spans on the path from the root to each span.

    `kinds` (n,) has a random number for each kind of span.
    """
    # NumPy warns about the overflow of a scalar, and not of an array.
    found, above, factor = kinds, forest.parent, np.array([STEP], np.uint64)
    while (inner := above >= 0).any():
        found = np.where(inner, found + factor * found[above], found)
        above = np.where(inner, above[above], -1)
        factor = factor * factor
    return _mixed(found)


def structures(trace: Places, path: Hashes) -> Hashes:
    """A hash (m,) of the set of paths in each of the traces 0 to m - 1.

    `trace` (n,) has the trace of each span. The number of spans with the same path does not
    matter: ten queries in a loop have the structure of one query.
    """
    order = np.lexsort((path, trace))
    trace_of, path_of = trace[order], path[order]
    again = (np.diff(trace_of) == 0) & (np.diff(path_of) == 0)
    first = np.concatenate([np.ones(min(order.size, 1), np.bool_), ~again])
    found = np.zeros(int(trace.max(initial=-1)) + 1, np.uint64)
    np.add.at(found, trace_of[first], path_of[first])
    return found


def _mixed(values: Hashes) -> Hashes:
    """SplitMix64 of the numbers, so that sums of different numbers are rarely equal."""
    values = values + np.uint64(STEP)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
