# SPDX-License-Identifier: Apache-2.0
"""The section of the critical path: which spans contain a change, and what requests call."""

from collections.abc import Iterator, Sequence

from tare.report.result.result import Result
from tare.report.result.verdicts import TracedRequests
from tare.report.sections.sections import Section, Table
from tare.report.typesetting import change, duration, interval, p_value, percent, safe, typeset
from tare.terminal import both_ends
from tare.verdict.traces import Change

MOST_SPANS = 30
"""Spans of a table; the others are added up in a row."""
LONGEST = 60
SPAN_COLUMNS = (
    "span",
    "baseline",
    "condition",
    "difference",
    "interval",
    "p adjusted",
    "self time",
    "calls",
)
SHARE_COLUMNS = (
    "condition",
    "requests",
    "baseline",
    "with the condition",
    "difference",
    "interval",
    "p adjusted",
)


def section(result: Result) -> Section:
    """Two tables for each root span: its parts, and the structures of its requests."""
    return Section(
        anchor="critical-path",
        name="Critical path",
        gist="which span contains the change, and whether requests call other spans",
        how="Each moment of a request belongs to the deepest span that the request waited for. So"
        " the times of all spans sum to the request, and their differences sum to its difference."
        " The last two columns are the self time of a span (no child of it runs) and the number of"
        " its calls per request.",
        tables=[table for traced in result.verdicts.traces for table in _tables(result, traced)],
        lines=[
            typeset(safe(line))
            for traced in result.verdicts.traces
            for line in _lines(result, traced)
        ],
        absent="the requests have no traces",
    )


def _lines(result: Result, traced: TracedRequests) -> Iterator[str]:
    mix = f"calls {traced.structures.verdict}: {traced.structures.reason}"
    for line in (traced.explained, mix) if traced.explained else (mix,):
        yield typeset(f"{_name(result, traced)}: {safe(line)}")


def _name(result: Result, traced: TracedRequests) -> str:
    where = traced.environment if len(result.environments) > 1 else ""
    return ", ".join(safe(part, LONGEST) for part in (traced.condition, where, traced.root) if part)


def _tables(result: Result, traced: TracedRequests) -> Iterator[Table]:
    of = _name(result, traced)
    yield Table(
        f"Time on the critical path per request: {of}", SPAN_COLUMNS, list(_parts(traced, of))
    )
    if len(traced.structures.shares) > 1:
        yield Table(f"Calls of requests: {of}", SHARE_COLUMNS, list(_shares(traced, of)), 2)


def _parts(traced: TracedRequests, of: str) -> Iterator[Sequence[str]]:
    yield (f"{of}, whole request", *_times(traced.mean_ns), "–", "–")
    for part in traced.parts[:MOST_SPANS]:
        yield (
            both_ends(part.span, LONGEST),
            *_times(part.critical_ns),
            typeset(f"{duration(part.self_ns.baseline)} → {duration(part.self_ns.condition)}"),
            f"{part.calls.baseline:.3g} → {part.calls.condition:.3g}",
        )
    if rest := traced.parts[MOST_SPANS:]:
        sums = [
            sum(getattr(part.critical_ns, name) for part in rest)
            for name in ("baseline", "condition", "difference")
        ]
        yield (f"{len(rest)} more", *_times(Change(*sums)), "–", "–")


def _times(of: Change) -> tuple[str, ...]:
    bounds = "–"
    if of.low is not None and of.high is not None:
        bounds = f"{duration(of.low, signed=True)} to {duration(of.high, signed=True)}"
    return (
        duration(of.baseline),
        duration(of.condition),
        duration(of.difference, signed=True),
        bounds,
        p_value(of.p_adjusted),
    )


def _shares(traced: TracedRequests, of: str) -> Iterator[Sequence[str]]:
    for shape in traced.structures.shares:
        share = shape.share
        yield (
            of,
            safe(shape.calls, 2 * LONGEST),
            percent(share.baseline, signed=False),
            percent(share.condition, signed=False),
            change(share.difference, "share"),
            interval(share.low, share.high, "share"),
            p_value(share.p_adjusted),
        )
