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
BETWEEN = 12
"""Characters between columns: two before each column, and an arrow."""


def trace_lines(
    traces: Sequence[TraceComparison], width: int, many: bool
) -> Iterator[tuple[str, str]]:
    """Lines as pairs of a heading and text, at most `width` characters long if names allow it.

    The environment is named if there are `many`.
    """
    for comparison in traces[:ROOTS]:
        yield from _of_root(comparison, width, comparison.environment if many else "")
    if (more := len(traces) - ROOTS) > 0:
        yield "", f"and {more} more root spans: see --json"


def _of_root(
    comparison: TraceComparison, width: int, environment: str
) -> Iterator[tuple[str, str]]:
    requests = " + ".join(f"{number:,}" for number in comparison.requests)
    where = ", ".join(part for part in (comparison.condition, environment, comparison.root) if part)
    yield where, f" against {comparison.baseline}, {requests} traces: {comparison.explained}"
    yield "", "  mean time on the critical path"
    shown, rest = comparison.parts[:PARTS], comparison.parts[PARTS:]
    rows = [
        ("whole request", *_cells(comparison.mean_ns)),
        *((part.span, *_cells(part.critical_ns)) for part in shown),
    ]
    if rest:
        rows.append((f"{len(rest)} more", *_sum(rest)))
    for name, before, after, difference, interval in aligned(rows, width - BETWEEN):
        yield "", f"  {name}  {before} -> {after}  {difference}  {interval}".rstrip()
    yield f"  calls {comparison.verdict}", f": {comparison.reason}"


def _cells(change: Change) -> tuple[str, str, str, str]:
    from tare.verdict.number_text import duration

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
    from tare.verdict.number_text import duration

    every = [part.critical_ns for part in parts]
    return (
        duration(sum(change.baseline for change in every)),
        duration(sum(change.condition for change in every)),
        duration(sum(change.difference for change in every), signed=True),
        "",
    )
