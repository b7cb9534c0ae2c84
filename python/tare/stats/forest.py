# SPDX-License-Identifier: Apache-2.0
"""Traces as trees of spans: where the time of each goes, and which shape it has.

All spans of many traces stand in arrays (n,), in any order. Nothing is done span by span: what a
span inherits from those above it is found by doubling the distance looked up, so deep traces cost
their logarithm.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

DEEPEST = 20
"""A span has fewer than 2^20 above it; the parents of one with more go round in a circle."""
STEP = 0x9E3779B97F4A7C15
"""Odd, with bits as if by chance: the golden ratio's."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Spans (n,) that belong to trees: the place of each one's parent (-1: none), and when it began
    and ended, in ns."""

    parent: Places
    begin: Places
    end: Places

    def inherited(self, values: Places, join: Callable[[Places, Places], Places]) -> Places:
        """`join` of each span's value and those of all spans above it."""
        found, above = values, self.parent
        while (inner := above >= 0).any():
            found = np.where(inner, join(found, found[above]), found)
            above = np.where(inner, above[above], -1)
        return found

    def roots(self) -> Places:
        """The place of the span above all others of each; -1 where parents go round in a circle."""
        found, above = np.arange(self.parent.size), self.parent
        for _ in range(DEEPEST):
            inner = above >= 0
            if not inner.any():
                return found
            found = np.where(inner, found[above], found)
            above = np.where(inner, above[above], -1)
        return np.where(above >= 0, -1, found)

    def kept(self, spans: Flags) -> "Forest":
        """Only `spans` (n,); what was above one of them has to be among them."""
        new = np.cumsum(spans) - 1
        parent = self.parent[spans]
        parent = np.where(parent >= 0, new[parent], -1)
        return Forest(parent, self.begin[spans], self.end[spans])

    def within_parents(self) -> "Forest":
        """Each span cut to the time in which all spans above it are under way.

        What goes on after its caller has returned, or by a clock that is behind, takes none of the
        caller's time. A span that is wholly outside ends where it begins.
        """
        begin = self.inherited(self.begin, np.maximum)
        end = self.inherited(self.end, np.minimum)
        return Forest(self.parent, begin, np.maximum(begin, end))

    @property
    def duration(self) -> Places:
        """In ns (n,)."""
        return self.end - self.begin


def self_times(forest: Forest) -> Places:
    """Of each span, in ns (n,), the time in which no span right below it is under way.

    `forest` has no span that is outside of its parent (`within_parents`).
    """
    inner = np.flatnonzero((forest.parent >= 0) & (forest.duration > 0))
    group = np.tile(forest.parent[inner], 2)
    at = np.concatenate([forest.begin[inner], forest.end[inner]])
    step = np.repeat([1, -1], inner.size)
    order = np.lexsort((-step, at, group))
    group, at = group[order], at[order]
    # Of one parent as many end as begin, so the count is 0 again where the next one's begin.
    busy = np.cumsum(step[order])[:-1] > 0
    covered = np.bincount(group[:-1][busy], weights=np.diff(at)[busy], minlength=forest.parent.size)
    return forest.duration - covered.astype(np.int64)


def critical_times(forest: Forest) -> Places:
    """Of each span, in ns (n,), its own part of the critical path: of a tree they sum to its root.

    The critical path goes back from the end of the root. Of the spans right below one that is on
    it, the last to end is on it too, then the last to end before that one began, and so on; what
    none of them covers is the span's own. (CRISP: Zhang et al., USENIX ATC 2022, section 3.)
    `forest` has no span that is outside of its parent (`within_parents`).
    """
    chosen = _last_to_end(forest)
    on_path = forest.inherited(chosen.astype(np.int64), np.minimum).astype(bool)
    mine = np.where(on_path, forest.duration, 0)
    below = on_path & (forest.parent >= 0)
    taken = np.bincount(forest.parent[below], weights=forest.duration[below], minlength=mine.size)
    return mine - taken.astype(np.int64)


def _last_to_end(forest: Forest) -> Flags:
    """The spans that those above them wait for; each root is one."""
    chosen = forest.parent < 0
    inner = np.flatnonzero(~chosen & (forest.duration > 0))
    if not inner.size:
        return chosen
    order = inner[np.lexsort((forest.end[inner], forest.parent[inner]))]
    group, number = forest.parent[order], np.arange(order.size)
    # Beside the ends of a parent's spans, in time, stand their beginnings: before each of these is
    # the last end that is not after it.
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
    """A number (n,) for the kinds of spans from the root down to each, equal where these are.

    `kinds` (n,) has a number of many bits for each kind of span.
    """
    # An array of one: it wraps around without a warning, as a single number does not.
    found, above, factor = kinds, forest.parent, np.array([STEP], np.uint64)
    while (inner := above >= 0).any():
        found = np.where(inner, found + factor * found[above], found)
        above = np.where(inner, above[above], -1)
        factor = factor * factor
    return _mixed(found)


def structures(trace: Places, path: Hashes) -> Hashes:
    """A number for each of the traces 0 to m - 1, shape (m,), equal where they have the same paths.

    `trace` (n,) has the trace of each span. How often a trace takes a path is not looked at: ten
    queries in a loop are the structure of one.
    """
    order = np.lexsort((path, trace))
    trace_of, path_of = trace[order], path[order]
    again = (np.diff(trace_of) == 0) & (np.diff(path_of) == 0)
    first = np.concatenate([np.ones(min(order.size, 1), np.bool_), ~again])
    found = np.zeros(int(trace.max(initial=-1)) + 1, np.uint64)
    np.add.at(found, trace_of[first], path_of[first])
    return found


def _mixed(values: Hashes) -> Hashes:
    """The same numbers with their bits spread (SplitMix64), so that sums of them rarely agree."""
    values = values + np.uint64(STEP)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
