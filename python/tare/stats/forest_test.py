# SPDX-License-Identifier: Apache-2.0
"""Trees of spans against literal formulas that walk them span by span."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tare.stats.forest import (
    Forest,
    critical_times,
    paths,
    self_times,
    structures,
)

Span = tuple[int, int, int]
"""Parent, begin, end."""


def forest(*spans: Span) -> Forest:
    return Forest(*(np.array([span[part] for span in spans], np.int64) for part in range(3)))


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Trees whose spans have any times and stand in any order."""
    size = draw(st.integers(1, 30))
    time = st.integers(0, 20)
    spans = []
    for place in range(size):
        parent = draw(st.integers(-1, place - 1)) if place else -1
        begin, other = draw(time), draw(time)
        spans.append((parent, min(begin, other), max(begin, other)))
    order = draw(st.permutations(range(size)))
    new = {old: at for at, old in enumerate(order)}
    moved = [spans[old] for old in order]
    return forest(*((new.get(parent, -1), begin, end) for parent, begin, end in moved))


def below(of: Forest, place: int) -> list[int]:
    return [child for child in range(of.parent.size) if of.parent[child] == place]


def literal_within(of: Forest, place: int) -> tuple[int, int]:
    begin, end = int(of.begin[place]), int(of.end[place])
    above = int(of.parent[place])
    while above >= 0:
        begin, end = max(begin, int(of.begin[above])), min(end, int(of.end[above]))
        above = int(of.parent[above])
    return begin, max(begin, end)


def literal_self_time(of: Forest, place: int) -> int:
    inner = below(of, place)
    moments = range(int(of.begin[place]), int(of.end[place]))
    return sum(not any(of.begin[child] <= at < of.end[child] for child in inner) for at in moments)


def literal_path(of: Forest, place: int) -> Iterator[tuple[int, int]]:
    """Spans on the critical path below a span, and the own time of each."""
    now, own = int(of.end[place]), int(of.duration[place])
    inner = sorted(below(of, place), key=lambda child: (of.end[child], child), reverse=True)
    for child in inner:
        if of.end[child] <= now and of.duration[child] > 0:
            now = int(of.begin[child])
            own -= int(of.duration[child])
            yield from literal_path(of, child)
    yield place, own


@settings(max_examples=300)
@given(forests())
def test_times_equal_a_walk_span_by_span(given_forest: Forest) -> None:
    of = given_forest.within_parents()
    size = of.parent.size
    assert [*zip(of.begin.tolist(), of.end.tolist(), strict=True)] == [
        literal_within(given_forest, place) for place in range(size)
    ]
    assert self_times(of).tolist() == [literal_self_time(of, place) for place in range(size)]
    on_path = dict(part for root in below(of, -1) for part in literal_path(of, root))
    times = critical_times(of)
    assert times.tolist() == [on_path.get(place, 0) for place in range(size)]
    assert times.sum() == of.duration[of.parent < 0].sum()


def test_a_parent_waits_for_the_child_that_ends_last() -> None:
    """Two calls at once, of which the longer call counts, then a call alone."""
    of = forest((-1, 0, 100), (0, 10, 40), (0, 10, 60), (0, 70, 90), (2, 20, 50))
    assert critical_times(of).tolist() == [30, 0, 20, 20, 30]
    assert self_times(of).tolist() == [30, 30, 20, 20, 30]


def test_a_span_is_cut_at_the_end_of_its_parent() -> None:
    of = forest((-1, 0, 10), (0, 5, 50), (1, 20, 40), (0, 30, 40)).within_parents()
    assert of.duration.tolist() == [10, 5, 0, 0]
    assert critical_times(of).tolist() == [5, 5, 0, 0]


def test_roots() -> None:
    """Spans 3 and 4 are each other's parents, and span 5 is its own parent."""
    of = Forest(np.array([-1, 0, 1, 4, 3, 5]), np.zeros(6, np.int64), np.zeros(6, np.int64))
    assert of.roots().tolist() == [0, 0, 0, -1, -1, -1]
    left = of.select(of.roots() >= 0)
    assert left.parent.tolist() == [-1, 0, 1]
    shuffled = Forest(np.array([2, -1, 1, 1]), *np.zeros((2, 4), np.int64))
    assert shuffled.select(np.array([True, True, True, False])).parent.tolist() == [2, -1, 1]


@pytest.mark.parametrize("deep", [1, 2, 3, 1_000])
def test_a_chain(deep: int) -> None:
    of = forest(*((place - 1, place, 3 * deep - place) for place in range(deep)))
    assert set(of.roots().tolist()) == {0}
    assert critical_times(of).sum() == 3 * deep


def test_nothing() -> None:
    none = np.empty(0, np.int64)
    of = Forest(none, none, none).within_parents()
    assert not critical_times(of).size
    assert not self_times(of).size
    assert not structures(none, paths(of, none.astype(np.uint64))).size


def kinds(names: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    generator = np.random.default_rng(1)
    known = generator.integers(0, 2**64, 128, np.uint64)
    return known[[ord(name) for name in names]]


def shape(names: str, parents: list[int]) -> int:
    zeros = np.zeros((2, len(names)), np.int64)
    of = Forest(np.array(parents), *zeros)
    return int(structures(np.zeros(len(names), np.int64), paths(of, kinds(names)))[0])


def test_structures() -> None:
    once = shape("abc", [-1, 0, 1])
    assert shape("abcbc", [-1, 0, 1, 0, 3]) == once, "a call made twice"
    assert shape("cba", [1, 2, -1]) == once, "spans in another order"
    assert shape("abc", [-1, 0, 0]) != once, "called by another span"
    assert shape("acb", [-1, 0, 1]) != once
    assert shape("ab", [-1, 0]) != once
    assert shape("abca", [-1, 0, 1, 2]) != once


def test_structures_are_those_of_each_trace() -> None:
    zeros = np.zeros((2, 5), np.int64)
    of = Forest(np.array([-1, 0, -1, 2, -1]), *zeros)
    found = structures(np.array([0, 0, 2, 2, 1]), paths(of, kinds("ababa")))
    assert found[0] == found[2] != found[1]
