# SPDX-License-Identifier: Apache-2.0
"""One trace of a run as the report shows it: the longest spans, each inside of its parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tare.samples.describe.span_tree import IDS
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import rows_of
from tare.samples.sql.group_numbers import Group, of_runs

if TYPE_CHECKING:
    from tare.samples.sql.table import Table
    from tare.stats.forest import Forest

CANDIDATES = 5
"""Requests that are tried: the first complete trace is shown."""
LARGEST = 100_000
"""Spans of a trace that are read, the longest ones."""
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


def example(
    samples: "Table", group: Group, first: int, duration_ns: float, most: int
) -> Trace | None:
    """The trace of the request whose root span took about `duration_ns`, with its `most` longest
    spans.

    `samples` are as `Result.samples` has them. `group` is a run and the name of its root span, of
    which those before the `first` are the warm-up. None if no such span is a root.
    """
    from tare.samples.describe.steadiness import with_place

    if not set(samples.columns) >= {*IDS, "start_ns"}:
        return None
    run, root = group
    of_run = of_runs(samples, [run])
    chosen = with_place(of_run.filter(of_run.span == root))
    chosen = chosen.filter(
        chosen.ok,
        ~chosen.left_out,
        chosen.place >= first,
        chosen.trace_id.notnull() & chosen.span_id.notnull(),
    )
    ids = of_run.select("trace_id", parent_id="span_id").distinct().mutate(inner=True)
    joined = chosen.left_join(ids, ["trace_id", "parent_id"])
    chosen = joined.filter(joined.inner.isnull() | (joined.parent_id == joined.span_id))
    away: Any = (chosen.duration_ns.cast("float64") - duration_ns).abs()
    order = chosen.mutate(away=away).order_by("away", "start_ns", "trace_id", "span_id")
    nearest = rows_of(order.select("trace_id", "span_id").limit(CANDIDATES))
    found = None
    for one in nearest:
        trace = _trace(of_run, run, one["trace_id"], one["span_id"], most)
        found = found or trace
        if trace is not None and not trace.outside:
            return trace
    return found


def _trace(of_run: "Table", run: int, trace: str, root: str, most: int) -> Trace | None:
    """None if the span `root` has a parent: several spans have its id."""
    import numpy as np

    from tare.stats.forest import Forest

    spans = _spans(of_run, trace, root)
    number: dict[str, int] = {}
    for place, one in enumerate(spans):
        # If several spans have the same id, it is the id of the first.
        number.setdefault(one["span_id"], place)
    parent = np.array([number.get(one["parent_id"], -1) for one in spans])
    parent[parent == np.arange(parent.size)] = -1
    begin = np.array([one["begin"] for one in spans], np.int64)
    forest = Forest(parent, begin, begin + np.array([one["duration"] for one in spans], np.int64))
    top = number[root]
    tree = forest.roots() == top
    if parent[top] >= 0:
        return None
    return Trace(
        run=run,
        started_ns=int(begin[top]),
        root=_tree([one for one, inside in zip(spans, tree, strict=True) if inside],
                   forest.select(tree), most),
        outside=int((~tree).sum()),
    )  # fmt: skip


def _spans(of_run: "Table", trace: str, root: str) -> list[dict[str, Any]]:
    sql = functions_of(of_run)
    timed = of_run.filter(
        of_run.trace_id == trace,
        of_run.span_id.notnull(),
        of_run.start_ns.notnull() & of_run.duration_ns.notnull(),
    )
    known = timed.columns
    duration: Any = timed.duration_ns.cast("int64")
    columns = timed.select(
        "span_id",
        "parent_id",
        "span",
        "ok",
        begin=timed.start_ns.cast("int64"),
        duration=duration,
        service=timed.service.cast("string") if "service" in known else sql.null("string"),
        error=timed.clock_error_ns.cast("int64")
        if "clock_error_ns" in known
        else sql.null("int64"),
        rank=(timed.span_id == root).ifelse(-(2**62), 0 - duration),
    )
    rows = rows_of(columns.order_by("rank").limit(LARGEST))
    return sorted(rows, key=lambda one: (one["span_id"], one["begin"], one["span"]))


def _tree(spans: Sequence[dict[str, Any]], forest: "Forest", most: int) -> Span:
    """The root span of `spans`, which are one tree."""
    import numpy as np

    from tare.stats.forest import critical_times, self_times

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
            one = spans[place]
            span = Span(
                name=one["span"],
                service=one["service"] or "",
                ok=one["ok"],
                begin_ns=int(forest.begin[place] - forest.begin[top]),
                duration_ns=one["duration"],
                self_ns=int(own[place]),
                critical_ns=int(critical[place]),
                clock_error_ns=one["error"] or 0,
                children=children.pop(place, ()),
                hidden=int(hidden[place]),
            )
            children.setdefault(int(forest.parent[place]), []).append(span)
    ((root,),) = children.values()
    return root
