# SPDX-License-Identifier: Apache-2.0
"""One trace of a run as the report shows it: the longest spans, each inside of its parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.samples.describe.span_tree import IDS
from tare.samples.sql.group_numbers import of_runs

if TYPE_CHECKING:
    from tare.samples.describe.span_arrays import SpanArrays
    from tare.samples.sql.table import Table

CANDIDATES = 5
"""Requests that are tried: the first complete trace is shown."""
DEEPEST = 40
"""Levels of spans that are shown: browsers flatten elements that are nested 512 deep."""


@dataclass(frozen=True)
class Span:
    """Times are in ns, `begin_ns` since the begin of the root span."""

    name: str
    service: str
    ok: bool
    begin_ns: int
    duration_ns: int
    self_ns: int
    """In which no child runs."""
    critical_ns: int
    """On the critical path."""
    clock_error_ns: int
    """The bound on the error of its clock; 0 if it is not known."""
    children: Sequence["Span"]
    """Those that are shown, the first to begin first."""
    hidden: int
    """The number of the other spans inside of it."""


@dataclass(frozen=True)
class Trace:
    """One request of a run."""

    run: int
    started_ns: int
    root: Span
    outside: int
    """The number of its spans that are not inside of the root span."""


@dataclass(frozen=True)
class Wanted:
    """A request to show: its root span took about `duration_ns`, and at least `first` requests
    with this root span began before it in its run."""

    root: str
    first: int
    duration_ns: float


def examples(samples: "Table", run: int, wanted: Sequence[Wanted], most: int) -> list[Trace | None]:
    """For each wanted request, the trace that is nearest to it, with its `most` longest spans.

    `samples` are as `Result.samples` has them. Spans are on the clock of their root span, as for
    the critical path. None if no request has such a root span.
    """
    import numpy as np

    from tare.samples.describe.defects import mended
    from tare.samples.describe.span_arrays import span_arrays
    from tare.samples.describe.steadiness import with_place

    if not set(samples.columns) >= {*IDS, "start_ns"}:
        return [None for _ in wanted]
    recorded = span_arrays(with_place(of_runs(samples, [run])))
    if recorded is None:
        return [None for _ in wanted]
    traced = mended(recorded)
    spans, forest = traced.spans, traced.spans.forest
    roots = forest.roots()
    tops = np.flatnonzero(
        (forest.parent < 0) & spans.ok & ~spans.left_out & ~traced.unclear[spans.trace]
    )

    def nearest(request: Wanted) -> Trace | None:
        named = np.array([name == request.root for name in spans.names])[spans.name[tops]]
        mine = tops[named & (spans.place[tops] >= request.first)]
        away = np.abs(forest.duration[mine] - request.duration_ns)
        tried = mine[np.lexsort((forest.begin[mine], away))][:CANDIDATES]
        if not tried.size:
            return None
        outside = [
            int((recorded.trace == spans.trace[top]).sum() - (roots == top).sum()) for top in tried
        ]
        chosen = outside.index(0) if 0 in outside else 0
        top = tried[chosen]
        tree = _tree(spans.select(roots == top), most)
        return Trace(run, int(forest.begin[top]), tree, outside[chosen])

    return [nearest(request) for request in wanted]


def _tree(spans: "SpanArrays", most: int) -> Span:
    """The root span of `spans`, which are one tree."""
    import numpy as np

    from tare.stats.forest import critical_times, self_times

    forest = spans.forest
    inside = forest.within_parents()
    own, critical = self_times(inside), critical_times(inside)
    depth = forest.inherited(np.ones(forest.parent.size, np.int64), np.add)
    # No span within its parent is longer, so the parents of the longest spans are among them.
    ranked = np.lexsort((forest.begin, depth, -inside.duration))
    shown = np.zeros(forest.parent.size, np.bool_)
    shown[ranked[:most]] = True
    shown &= depth <= DEEPEST
    places = np.where(shown, np.arange(shown.size), -1)
    nearest = forest.inherited(places, lambda mine, above: np.where(mine >= 0, mine, above))
    hidden = np.bincount(nearest[~shown], minlength=shown.size)
    children: dict[int, list[Span]] = {}
    (top,) = np.flatnonzero(forest.parent < 0)
    for place in np.lexsort((forest.begin, -depth)).tolist():
        if shown[place]:
            span = Span(
                name=spans.names[spans.name[place]],
                service=spans.clocks[spans.clock[place]].service or "",
                ok=bool(spans.ok[place]),
                begin_ns=int(forest.begin[place] - forest.begin[top]),
                duration_ns=int(forest.duration[place]),
                self_ns=int(own[place]),
                critical_ns=int(critical[place]),
                clock_error_ns=int(spans.clock_error[place]),
                children=children.pop(place, ()),
                hidden=int(hidden[place]),
            )
            children.setdefault(int(forest.parent[place]), []).append(span)
    ((root,),) = children.values()
    return root
