# SPDX-License-Identifier: Apache-2.0
"""The traces of each run: where the time of its requests went, and what they called."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from tare.samples.describe.defects import Mended, mended
from tare.samples.describe.span_arrays import SpanArrays, span_arrays
from tare.samples.describe.span_tree import IDS
from tare.samples.model import ROOT_QUANTILES, Call, Part, Traced
from tare.samples.sql.group_numbers import Group, of_runs
from tare.stats.forest import critical_times, paths, self_times, structures

if TYPE_CHECKING:
    import numpy.typing as npt

    from tare.samples.sql.table import Table

STRUCTURES = 1_000
"""The most common structures of a run are counted separately; the others count as `OTHER`."""
OTHER = 0


@dataclass(frozen=True)
class Traces:
    """The traces of some runs by run and root span, and what their structures call."""

    of: dict[Group, Traced] = field(default_factory=dict)
    structures: dict[int, frozenset[int]] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    lines: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By run, what is wrong with its traces, and what was done about it."""

    def add(self, other: Traces) -> None:
        """Adds the traces of other runs."""
        self.of.update(other.of)
        self.structures.update(other.structures)
        self.calls.update(other.calls)
        self.lines.update(other.lines)


def traces(samples: Table, first: Mapping[Group, int]) -> Traces:
    """Of `samples` with `run`, `span`, `place`, `ok`, `start_ns`, `duration_ns` and ids of traces.

    `first` has the first request of each run and span after the warm-up. A request is a span
    without parent and all of its descendants. Failed requests, and traces with missing spans or
    unknown times, are left out. Empty if samples have no ids, or if no request has other spans.
    """
    found = Traces()
    if not set(samples.columns) >= {*IDS, "start_ns"}:
        return found
    # One run after the other, so that memory holds the spans of one run only.
    for run in sorted({run for run, _ in first}):
        cuts = {span: cut for (its, span), cut in first.items() if its == run}
        spans = span_arrays(of_runs(samples, [run]))
        if spans is not None:
            traced = mended(spans)
            found.lines[run] = traced.lines
            for root, requests in _of_run(traced, cuts, found):
                found.of[run, root] = requests
    return found


def _of_run(traced: Mended, cuts: Mapping[str, int], known: Traces) -> Iterator[tuple[str, Traced]]:
    """The requests of each root span; adds their structures to `known`."""
    spans, broken = traced.spans, traced.broken
    root = spans.forest.roots()
    whole = ~(broken | traced.unclear)
    cut = np.array([cuts.get(name, 0) for name in spans.names])
    counts = spans.ok[root] & (spans.place[root] >= cut[spans.name[root]]) & whole[spans.trace]
    left_out = _share_by_name(spans, root, broken)
    spans = spans.select(counts)
    forest, root = spans.forest.within_parents(), spans.forest.roots()
    own, alone = critical_times(forest), self_times(forest)
    path = paths(forest, _numbers(spans.names)[spans.name])
    for kind in np.unique(spans.name[root]).tolist():
        mine = spans.name[root] == kind
        tops = np.flatnonzero(mine & (forest.parent < 0))
        if tops.size < mine.sum():
            name, size = spans.name[mine], len(spans.names)
            critical, apart, calls = (
                (np.bincount(name, values, size) / tops.size).tolist()
                for values in (own[mine], alone[mine], None)
            )
            took = forest.duration[tops]
            yield (
                spans.names[kind],
                Traced(
                    requests=tops.size,
                    mean_ns=float(took.mean()),
                    parts={
                        spans.names[number]: Part(critical[number], apart[number], calls[number])
                        for number in np.unique(name).tolist()
                    },
                    structures=_structures(spans, root, mine, path, known),
                    broken=float(left_out[kind]),
                    quantiles={
                        name: float(np.quantile(took, at)) for name, at in ROOT_QUANTILES.items()
                    },
                ),
            )


def _share_by_name(
    spans: SpanArrays, root: npt.NDArray[np.int64], broken: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """The share of each root span's requests (names,) whose trace is broken."""
    tops = root == np.arange(root.size)
    name, lost = spans.name[tops], broken[spans.trace[tops]]
    every = np.bincount(name, minlength=len(spans.names))
    return np.bincount(name, lost, len(spans.names)) / np.maximum(every, 1)


def _numbers(names: Collection[str]) -> npt.NDArray[np.uint64]:
    """A hash of each name, the same in every run."""
    digests = (blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), np.uint64)


def _structures(
    spans: SpanArrays,
    root: npt.NDArray[np.int64],
    mine: npt.NDArray[np.bool_],
    path: npt.NDArray[np.uint64],
    known: Traces,
) -> dict[int, int]:
    """The number of requests of each structure; adds the structures to `known`."""
    _, number = np.unique(root[mine], return_inverse=True)
    shape = structures(number, path[mine])
    found, example, count = np.unique(shape, return_index=True, return_counts=True)
    usual = np.argsort(-count, kind="stable")[:STRUCTURES]
    places = np.flatnonzero(mine)
    shapes: dict[int, int] = {}
    for index in usual.tolist():
        shapes[int(found[index])] = int(count[index])
        if int(found[index]) not in known.structures:
            calls = _calls(spans, path, places[number == example[index]])
            known.structures[int(found[index])] = frozenset(calls)
            known.calls.update(calls)
    if rest := int(count.sum()) - sum(shapes.values()):
        shapes[OTHER] = rest
    return shapes


def _calls(
    spans: SpanArrays, path: npt.NDArray[np.uint64], members: npt.NDArray[np.int64]
) -> dict[int, Call]:
    """The calls of one trace, whose spans are `members`, by the hash of their path."""
    numbers, first = np.unique(path[members], return_index=True)
    places = members[first]
    above = spans.forest.parent[places]
    callers = np.where(above >= 0, path[above], np.uint64(0))
    names = (spans.names[name] for name in spans.name[places].tolist())
    return dict(zip(numbers.tolist(), map(Call, callers.tolist(), names), strict=True))
