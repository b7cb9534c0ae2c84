# SPDX-License-Identifier: Apache-2.0
"""The section of single requests: a median and a slow request of each condition, span by span."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures.marks import SERIES
from tare.report.result.example_traces import Span, Trace, Wanted, examples
from tare.report.result.result import Result
from tare.report.sections.sections import Section
from tare.report.typesetting import duration, plural
from tare.samples.model import ROOT_QUANTILES, Traced
from tare.terminal import both_ends

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

ROOTS = 3
"""Root spans of an environment, those that take most time in all."""
GROUPS = 12
CONDITIONS = 8
ROWS = 2_000
"""Of all waterfalls together."""
MOST, FEWEST = 200, 10
"""Rows of one waterfall."""
OPEN = 30
"""If a span is among so many longest spans of its request, it is visible from the start."""
INDENTED = 8
"""Levels that are indented; deeper levels are below each other."""
LONGEST = 60
"""Letters of a name."""
_Run = tuple[int, Traced]


@dataclass(frozen=True)
class Row:
    """A span as it is written; places are in percent of the width."""

    name: str
    time: str
    facts: str
    colour: str
    style: str
    """Whether the request waits for the span itself: `path`, else `beside`."""
    depth: int
    left: float
    width: float
    children: Sequence["Row"]
    hidden: str
    is_open: bool


@dataclass(frozen=True)
class Waterfall:
    """One request of a condition."""

    condition: str
    about: str
    root: Row


@dataclass(frozen=True)
class Group:
    """The same kind of request in each condition, on one axis of time."""

    of: str
    legend: Sequence[tuple[str, str]]
    """Services and their colours."""
    waterfalls: Sequence[Waterfall]


@dataclass(frozen=True)
class _Kind:
    """Which requests are shown, and the run of each condition that they come from."""

    environment: str
    root: str
    metric: str
    runs: Mapping[str, _Run]


def groups(result: Result, samples: "Table | None") -> list[Group]:
    """The waterfalls of a result; `samples` are as `Result.samples` has them."""
    kinds = [*_kinds(result)][:GROUPS]
    if samples is None or not kinds:
        return []
    most = min(max(ROWS // sum(len(kind.runs) for kind in kinds), FEWEST), MOST)
    wanted: dict[int, list[tuple[int, str, Wanted]]] = {}
    for number, kind in enumerate(kinds):
        for condition, (run, traced) in kind.runs.items():
            first = result.looks.first.get((run, kind.root), 0)
            request = Wanted(kind.root, first, traced.quantiles[kind.metric])
            wanted.setdefault(run, []).append((number, condition, request))
    found: dict[tuple[int, str], Trace] = {}
    # One run after the other, so that memory holds the spans of one run only.
    for run, of_run in wanted.items():
        traces = examples(samples, run, [request for *_, request in of_run], most)
        found |= {
            (number, condition): trace
            for (number, condition, _), trace in zip(of_run, traces, strict=True)
            if trace is not None
        }
    shown = (
        (kind, {name: found[number, name] for name in kind.runs if (number, name) in found})
        for number, kind in enumerate(kinds)
    )
    return [_group(result, kind, traces) for kind, traces in shown if traces]


def section(shown: Sequence[Group]) -> Section:
    """The template adds the waterfalls."""
    return Section(
        anchor="waterfalls",
        name="Single requests",
        gist="a median request and a slow one of each condition, span by span",
        how="One request at p50 and one at p99 of the root span, from the run in the middle: its"
        " p50 or p99 is the median of all runs. Waterfalls of the same kind have the same axis of"
        " time. A filled bar is on the critical path: the request waited for the span itself. The"
        " table in Critical path has the mean of all requests. If clocks of services differ, spans"
        " are moved as for the critical path. Click a span, or move to it and"
        " press Enter, to fold it and to see its begin and its self time. A time with ± is shorter"
        " than the error of its clock, which follows.",
        rows=sum(1 for group in shown for _ in group.waterfalls) * OPEN,
        absent="the requests have no traces",
    )


def _kinds(result: Result) -> Iterator[_Kind]:
    """The root spans of each environment, those that take most time first, at each quantile."""
    traced = result.experiment.traces
    conditions = result.conditions[:CONDITIONS]
    for environment in result.environments:
        runs: dict[str, dict[str, list[_Run]]] = {}
        for (run, root), requests in traced.items():
            where, condition = result.places.get(run, ("", ""))
            if where == environment and condition in conditions:
                runs.setdefault(root, {}).setdefault(condition, []).append((run, requests))
        for root in sorted(runs, key=lambda name: -_time(runs[name]))[:ROOTS]:
            for metric in ROOT_QUANTILES:
                middle = {
                    condition: _middle(runs[root][condition], metric)
                    for condition in conditions
                    if condition in runs[root]
                }
                yield _Kind(environment, root, metric, middle)


def _time(runs: Mapping[str, Sequence[_Run]]) -> float:
    return sum(traced.requests * traced.mean_ns for of in runs.values() for _, traced in of)


def _middle(runs: Sequence[_Run], metric: str) -> _Run:
    """The run whose quantile is the median of all runs; of two medians, the lower."""
    ordered = sorted(runs, key=lambda run: (run[1].quantiles[metric], run[0]))
    return ordered[(len(ordered) - 1) // 2]


def _group(result: Result, kind: _Kind, traces: Mapping[str, Trace]) -> Group:
    services = dict.fromkeys(name for trace in traces.values() for name in _services(trace.root))
    colours = dict(zip(services, SERIES[1:], strict=False))
    end = max(1, *(trace.root.duration_ns for trace in traces.values()))
    several = [kind.environment] if len(result.environments) > 1 else []
    return Group(
        of=", ".join(both_ends(part, LONGEST) for part in (kind.root, *several, kind.metric)),
        legend=[
            *((both_ends(name, 24), colour) for name, colour in colours.items() if name),
            *([("other services", SERIES[0])] if len(services) > len(colours) else []),
        ],
        waterfalls=[
            Waterfall(
                both_ends(name, 40), _about(trace), _row(trace.root, end, colours, _longest(trace))
            )
            for name, trace in traces.items()
        ],
    )


def _services(span: Span) -> Iterator[str]:
    yield span.service
    for child in span.children:
        yield from _services(child)


def _longest(trace: Trace) -> float:
    """The duration of the last of the OPEN longest spans."""
    durations = sorted(_durations(trace.root), reverse=True)
    return durations[min(OPEN, len(durations)) - 1]


def _durations(span: Span) -> Iterator[int]:
    yield span.duration_ns
    for child in span.children:
        yield from _durations(child)


def _about(trace: Trace) -> str:
    parts = [duration(trace.root.duration_ns), f"run {trace.run}"]
    if trace.outside:
        parts.append(f"{plural(trace.outside, 'span')} outside of the root span not shown")
    return ", ".join(parts)


def _row(span: Span, end: int, colours: Mapping[str, str], longest: float, depth: int = 0) -> Row:
    left = min(max(100 * span.begin_ns / end, 0.0), 100.0)
    right = min(max(100 * (span.begin_ns + span.duration_ns) / end, left), 100.0)
    in_error = span.duration_ns < span.clock_error_ns
    facts = [
        f"begins after {duration(span.begin_ns)}",
        f"self time {duration(span.self_ns)}",
        f"on the critical path {duration(span.critical_ns)}",
    ]
    if in_error:
        facts.append("shorter than the error of its clock")
    return Row(
        name=both_ends(span.name, LONGEST) + " (failed)" * (not span.ok),
        time=duration(span.duration_ns) + f" (±{duration(span.clock_error_ns)})" * in_error,
        facts=", ".join(facts),
        colour=colours.get(span.service, SERIES[0]),
        style="path" if span.critical_ns else "beside",
        depth=min(depth, INDENTED),
        left=round(left, 2),
        width=round(right - left, 2),
        children=[_row(child, end, colours, longest, depth + 1) for child in span.children],
        hidden=f"{plural(span.hidden, 'more span')}, shorter or deeper" if span.hidden else "",
        is_open=any(child.duration_ns >= longest for child in span.children),
    )
