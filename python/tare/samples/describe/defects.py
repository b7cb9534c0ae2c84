# SPDX-License-Identifier: Apache-2.0
"""Traces with defects: what is mended, what is left out of the critical path, what is reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tare.samples.describe.clocks import MICROSECOND, Set, set_clocks

if TYPE_CHECKING:
    import numpy.typing as npt

    from tare.samples.describe.span_arrays import SpanArrays

SOME = 0.01
"""Share of spans that may be odd."""
FEW = 0.002
"""The share of a run's traces that the begin and the end of a recording may cut off."""


@dataclass(frozen=True, eq=False)
class Mended:
    """Traces as far as they can be mended."""

    spans: SpanArrays
    """By the clocks of their root spans."""
    broken: npt.NDArray[np.bool_]
    """Whether each trace, by its number (m,), lacks a span that was recorded elsewhere or lost."""
    unclear: npt.NDArray[np.bool_]
    """Whether the calls do not show when a span of the trace ran."""
    lines: tuple[str, ...]
    """What is wrong, and what was done about it, for a person."""


def mended(spans: SpanArrays) -> Mended:
    """`spans` without cycles, mended."""
    spans = spans.select(spans.forest.roots() >= 0)
    without = _without_root(spans)
    clocks = set_clocks(spans)
    unclear = np.zeros(without.size, np.bool_)
    unclear[spans.trace[clocks.unclear]] = True
    lines = (*clocks.lines, *_begin_early(clocks), *_lost_roots(spans, without))
    return Mended(clocks.spans, _lacks_span(spans) | without, unclear, lines)


def _begin_early(clocks: Set) -> Iterator[str]:
    """Kinds of spans of which some begin before their parent span, and no call shows why."""
    spans = clocks.spans
    inner = np.flatnonzero((spans.forest.parent >= 0) & ~clocks.unclear)
    early = spans.forest.begin[spans.forest.parent[inner]] - spans.forest.begin[inner]
    name, size = spans.name[inner], len(spans.names)
    every = np.bincount(name, minlength=size)
    odd = np.bincount(name[early > MICROSECOND], minlength=size)
    for kind in sorted(np.flatnonzero(odd > SOME * every).tolist(), key=spans.names.__getitem__):
        yield (
            f"{odd[kind]:,} of {every[kind]:,} '{spans.names[kind]}' begin before their parent"
            f" span, by up to {early[name == kind].max() / 1e6:,.3g} ms: the clocks of two hosts"
            " differ; the critical path has them from the begin of the parent span on"
        )


def _lacks_span(spans: SpanArrays) -> npt.NDArray[np.bool_]:
    """Whether each trace, by its number (m,), lacks a span between two recorded spans.

    In a complete trace, all spans without a recorded parent have the same parent, or none.
    """
    tops = spans.forest.parent < 0
    trace, caller = spans.trace[tops], spans.caller[tops]
    order = np.lexsort((caller, trace))
    trace, caller = trace[order], caller[order]
    other = (np.diff(trace) == 0) & (np.diff(caller) != 0)
    return _flagged(spans, trace[1:][other])


def _without_root(spans: SpanArrays) -> npt.NDArray[np.bool_]:
    """Whether each trace, by its number (m,), begins with a span whose parent was not recorded,
    of a kind whose spans mostly have a recorded parent."""
    size = len(spans.names)
    lost, inner = (
        np.bincount(spans.name[some], minlength=size)
        for some in (spans.lost, spans.forest.parent >= 0)
    )
    return _flagged(spans, spans.trace[spans.lost & (lost < inner)[spans.name]])


def _flagged(spans: SpanArrays, traces: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    found = np.zeros(int(spans.trace.max(initial=-1)) + 1, np.bool_)
    found[traces] = True
    return found


def _lost_roots(spans: SpanArrays, without: npt.NDArray[np.bool_]) -> Iterator[str]:
    """That some traces lack their root, unless so few that the recording may have cut them."""
    traces = np.unique(spans.trace)
    lost = np.flatnonzero(without & ~_lacks_span(spans))
    if lost.size <= FEW * traces.size:
        return
    tops = spans.lost & np.isin(spans.trace, lost)
    name = np.bincount(spans.name[tops], minlength=len(spans.names)).argmax()
    yield (
        f"{lost.size:,} of {traces.size:,} traces lack their root span: they begin with spans such"
        f" as '{spans.names[name]}', and their parent span was not recorded; they are left out of"
        " the critical path"
    )
