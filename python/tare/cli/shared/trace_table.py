# SPDX-License-Identifier: Apache-2.0
"""Comparisons of traces on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tare.verdict.traces import Change, SpanPart, TraceComparison

PARTS = 5
"""The number of spans shown; the others are added up in one line."""
ROOTS = 3
MOST = 3
"""Spans that explain a change."""
SMALL_REST = 0.2
"""The share of a change that other spans may have, which are not named."""
SMALL = 0.001
"""Changes by a smaller share of a request are not worth a sentence."""
BETWEEN = 12
"""Characters between columns: two before each column, and an arrow."""


def trace_lines(
    traces: Sequence[TraceComparison], width: int, many: bool
) -> Iterator[tuple[str, str]]:
    """Lines as pairs of a heading and text, at most `width` characters long if names allow it.

    The environment is named if there are `many`.
    """
    for one in traces[:ROOTS]:
        yield from _of_root(one, width, one.environment if many else "")
    if (more := len(traces) - ROOTS) > 0:
        yield "", f"and {more} more root spans: see --json"


def _of_root(one: TraceComparison, width: int, environment: str) -> Iterator[tuple[str, str]]:
    requests = " + ".join(f"{number:,}" for number in one.requests)
    where = ", ".join(part for part in (one.condition, environment, one.root) if part)
    yield where, f" against {one.baseline}, {requests} traces: {_explained(one)}"
    yield "", "  mean time on the critical path"
    shown, rest = one.parts[:PARTS], one.parts[PARTS:]
    rows = [
        ("whole request", *_cells(one.mean_ns)),
        *((part.span, *_cells(part.critical_ns)) for part in shown),
    ]
    if rest:
        rows.append((f"{len(rest)} more", *_sum(rest)))
    for name, before, after, difference, interval in aligned(rows, width - BETWEEN):
        yield "", f"  {name}  {before} -> {after}  {difference}  {interval}".rstrip()
    yield f"  calls {one.verdict}", f": {one.reason}"


def _explained(one: TraceComparison) -> str:
    """Which spans the change of the mean is in, in a sentence."""
    from tare.verdict.words import duration

    mean = one.mean_ns
    least = SMALL * mean.larger
    is_known = mean.low is not None
    changed = [
        part
        for part in one.parts
        if abs(part.critical_ns.difference) >= least
        if part.critical_ns.is_shown or not is_known
    ]
    if abs(mean.difference) < least or (is_known and not mean.is_shown):
        moved = f", but {_listed(changed[:MOST])}" if changed else ""
        return f"requests show no change of their mean time{moved}"
    explaining: list[SpanPart] = []
    rest = sum(abs(part.critical_ns.difference) for part in changed)
    for part in changed[:MOST]:
        if rest > SMALL_REST * abs(mean.difference):
            explaining.append(part)
            rest -= abs(part.critical_ns.difference)
    where = f", explained by {_listed(explaining)}" if explaining else ", in many spans"
    longer = "longer" if mean.difference > 0 else "less"
    proof = "" if is_known else "; too few runs to prove it"
    return f"requests take {duration(abs(mean.difference))} {longer}{where}{proof}"


def _listed(parts: Sequence[SpanPart]) -> str:
    from tare.verdict.words import duration

    named = (
        f"'{part.span}' ({duration(part.critical_ns.difference, signed=True)})" for part in parts
    )
    *first, last = named
    return f"{', '.join(first)} and {last}" if first else last


def _cells(change: Change) -> tuple[str, str, str, str]:
    from tare.verdict.words import duration

    interval = ""
    if change.low is not None and change.high is not None:
        low, high = (duration(bound, signed=True) for bound in (change.low, change.high))
        shared = f" {high.rpartition(' ')[2]}"
        interval = f"{low.removesuffix(shared)} to {high}"
    return (
        duration(change.baseline),
        duration(change.condition),
        duration(change.difference, signed=True),
        interval,
    )


def _sum(parts: Sequence[SpanPart]) -> tuple[str, str, str, str]:
    from tare.verdict.words import duration

    every = [part.critical_ns for part in parts]
    return (
        duration(sum(one.baseline for one in every)),
        duration(sum(one.condition for one in every)),
        duration(sum(one.difference for one in every), signed=True),
        "",
    )
