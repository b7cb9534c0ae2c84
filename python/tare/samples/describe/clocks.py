# SPDX-License-Identifier: Apache-2.0
"""Clocks of services that differ: how far they are apart, and spans on the clock of their root.

docs/decisions/0176-clocks-are-set-by-calls.md has what is assumed, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tare.stats.clock_offset import ODD, offsets
from tare.stats.forest import Forest

if TYPE_CHECKING:
    import numpy.typing as npt

    from tare.samples.describe.span_arrays import SpanArrays

MICROSECOND = 1_000
"""In which many tracers record times."""
AFTER_REPLY = 100_000
"""Servers end a span after they have sent the reply: by up to this time in ns on equal clocks."""
FEWEST_CALLS = 5
"""That show that a server's clock is ahead. A single server span before its call shows the
opposite."""

What = Literal["offset", "centred", "unclear", "late"]
"""What is done about clocks that differ; nothing is done about spans that end late."""


class Names(NamedTuple):
    """Two services."""

    caller: str
    called: str


@dataclass(frozen=True, eq=False)
class _Calls:
    """Calls (k,) between two clocks, in order of time; times in ns."""

    span: npt.NDArray[np.int64]
    """The span that was called, by the other clock than its parent."""
    sign: npt.NDArray[np.int64]
    """1 if the span was recorded by the second of the two clocks, -1 if by the first."""
    served: npt.NDArray[np.bool_]
    """Whether it is the span of a server, which begins after its call."""
    fits: npt.NDArray[np.bool_]
    """Whether it is the span of a server, and not longer than its parent."""
    waited: npt.NDArray[np.bool_]
    """Whether its parent is also the call of a client: then it ends before the call, too."""
    begin: npt.NDArray[np.int64]
    """The begin of the span minus the begin of its parent."""
    end: npt.NDArray[np.int64]

    def select(self, some: npt.NDArray[np.int64]) -> _Calls:
        return _Calls(*(values[some] for values in vars(self).values()))

    @property
    def early(self) -> npt.NDArray[np.bool_]:
        """Whether a server's span (k,) begins before its parent."""
        return self.served & (self.begin < -MICROSECOND)

    @property
    def late(self) -> npt.NDArray[np.bool_]:
        """Whether a server's span (k,) that fits into its parent ends clearly after it."""
        return self.fits & (self.end > AFTER_REPLY)


@dataclass(frozen=True, eq=False)
class _Setting:
    """What is done with the spans of some calls (k,)."""

    move: npt.NDArray[np.int64]
    """By how much the clock of the span is ahead of the clock of its parent, in ns."""
    unclear: npt.NDArray[np.bool_]
    """Whether the calls do not show when the span ran."""
    what: What


_Found = tuple[_Calls, _Setting]


@dataclass(frozen=True, eq=False)
class Set:
    """Spans (n,) by the clock of their root span, as far as calls show it."""

    spans: SpanArrays
    unclear: npt.NDArray[np.bool_]
    """Whether the calls do not show when a span ran."""
    lines: tuple[str, ...]
    """What was found and done, for a person."""


def set_clocks(spans: SpanArrays) -> Set:
    """Moves spans if calls show that the clocks of two services differ. No span of `spans` is its
    own ancestor."""
    forest = spans.forest
    move = np.zeros(forest.parent.size, np.int64)
    unclear = np.zeros(forest.parent.size, np.bool_)
    settings: dict[tuple[What, Names], list[_Found]] = {}
    for calls in _by_pair(spans):
        if (setting := _setting(calls)) is None:
            continue
        move[calls.span] = setting.move
        unclear[calls.span] = setting.unclear
        some = calls.span[calls.served][0]
        names = (spans.clocks[spans.clock[span]].service for span in (forest.parent[some], some))
        place = setting.what, Names(*(name or "?" for name in names))
        settings.setdefault(place, []).append((calls, setting))
    if not settings:
        return Set(spans, unclear, ())
    ahead = forest.inherited(move, np.add)
    moved = Forest(forest.parent, forest.begin - ahead, forest.end - ahead)
    lines = (LINES[what](names, found) for (what, names), found in settings.items())
    return Set(replace(spans, forest=moved), unclear, tuple(lines))


def _by_pair(spans: SpanArrays) -> Iterator[_Calls]:
    """The calls between each two clocks that have calls of a server."""
    forest, clock = spans.forest, spans.clock
    child = np.flatnonzero(forest.parent >= 0)
    parent = forest.parent[child]
    # Programs of one host have one clock.
    hosts = [program.host or f"/{number}" for number, program in enumerate(spans.clocks)]
    host = np.unique(hosts, return_inverse=True)[1]
    apart = host[clock[child]] != host[clock[parent]]
    child, parent = child[apart], parent[apart]
    begin = forest.begin[child] - forest.begin[parent]
    end = forest.end[child] - forest.end[parent]
    served = spans.of_kind("server")[child]
    fits = served & (begin - end >= -MICROSECOND)
    waited = fits & spans.of_kind("client")[parent]
    sign = np.where(clock[child] > clock[parent], 1, -1)
    calls = _Calls(child, sign, served, fits, waited, begin, end)
    first, second = np.sort([clock[child], clock[parent]], axis=0)
    pair = first * len(spans.clocks) + second
    order = np.lexsort((forest.begin[parent], pair))
    for some in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
        if served[some].any():
            yield calls.select(some)


def _setting(calls: _Calls) -> _Setting | None:
    """None if the clocks agree, as far as their calls show."""
    served, waited = calls.served, calls.waited
    is_early = calls.early.sum() > ODD * served.sum()
    if not is_early and (calls.early | calls.late).sum() <= ODD * calls.fits.sum():
        return None
    still, clear = np.zeros(served.size, np.int64), np.zeros(served.size, np.bool_)
    found = _offsets(calls) if is_early or waited.sum() >= FEWEST_CALLS else None
    if found is not None:
        return _Setting(calls.sign * found, clear, "offset") if found.any() else None
    if not is_early:
        return _Setting(still, clear, "late")
    outside = waited & (calls.early | calls.late)
    centred = np.where(outside, (calls.begin + calls.end) // 2, 0)
    return _Setting(centred, served & ~waited, "centred" if waited.any() else "unclear")


def _offsets(calls: _Calls) -> npt.NDArray[np.int64] | None:
    """How much the second clock is ahead at each call (k,); None if calls contradict each other,
    or if callers waited for too few."""
    chosen = np.flatnonzero(calls.waited)
    if 2 * chosen.size < min(calls.served.sum(), 2 * FEWEST_CALLS):
        return None
    bounds = calls.sign * np.array([calls.end - MICROSECOND, calls.begin + MICROSECOND])
    low, high = np.sort(bounds[:, chosen], axis=0)
    parts = offsets(low, high)
    if parts is None:
        return None
    ahead = np.array([0 if part.low <= 0 <= part.high else part.middle for part in parts], np.int64)
    first = chosen[[part.first for part in parts]]
    first[0] = 0
    return ahead[np.searchsorted(first, np.arange(calls.span.size), "right") - 1]


def _offset_line(names: Names, found: Sequence[_Found]) -> str:
    # Of calls in both directions, all as seen by the first.
    moves = [
        (setting.move * calls.sign * calls.sign[calls.served][0])[calls.served]
        for calls, setting in found
    ]
    least, most = (int(end(map(end, moves))) for end in (min, max))
    word = "ahead of"
    if most < 0:
        least, most, word = -most, -least, "behind"
    apart = _ms(most) if _ms(least) == _ms(most) else f"{_ms(least)} to {_ms(most)}"
    return (
        f"the clock of '{names.called}' is {apart} ms {word} the clock of '{names.caller}'"
        f" (calls: {sum(map(len, moves)):,}): its spans are moved by this for the critical path"
    )


def _early(names: Names, found: Sequence[_Found]) -> str:
    begins = [calls.begin[calls.served] for calls, _ in found]
    early = sum(int(calls.early.sum()) for calls, _ in found)
    return (
        f"{early:,} of {sum(map(len, begins)):,} server spans of '{names.called}' begin before the"
        f" span of '{names.caller}' that calls them, by up to {_ms(-min(map(min, begins)))} ms:"
        " the clocks differ"
    )


def _centred_line(names: Names, found: Sequence[_Found]) -> str:
    lost = sum(int(setting.unclear.sum()) for _, setting in found)
    more = f"; traces with {lost:,} longer server spans are left out" if lost else ""
    return (
        f"{_early(names, found)}, and not always by the same time; for the critical path, each is"
        f" moved to the middle of its client span{more}"
    )


def _unclear_line(names: Names, found: Sequence[_Found]) -> str:
    return (
        f"{_early(names, found)}, and no client span that is at least as long shows by how much;"
        " these traces are left out of the critical path"
    )


def _late_line(names: Names, found: Sequence[_Found]) -> str:
    late = sum(int(calls.late.sum()) for calls, _ in found)
    every = sum(int(calls.served.sum()) for calls, _ in found)
    most = _ms(max(int(calls.end[calls.fits].max()) for calls, _ in found))
    return (
        f"{late:,} of {every:,} server spans of '{names.called}' end after the span of"
        f" '{names.caller}' that calls them, by up to {most} ms: their time after it is not on the"
        " critical path, which is wrong if the clocks of the two services differ"
    )


LINES: Mapping[What, Callable[[Names, Sequence[_Found]], str]] = {
    "offset": _offset_line,
    "centred": _centred_line,
    "unclear": _unclear_line,
    "late": _late_line,
}


def _ms(ns: float) -> str:
    return f"{ns / 1e6:,.3g}"
