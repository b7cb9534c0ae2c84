# SPDX-License-Identifier: Apache-2.0
"""Files that were opened as runs of an experiment, ready to be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tare.samples.counted import Counted, Histogram, distances
from tare.samples.describe.load_stats import load_stats
from tare.samples.describe.rates import with_rates
from tare.samples.describe.traces import Traces, traces
from tare.samples.describe.warm_up_cuts import SHAPE, CutSummary
from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.model import Experiment, LoadStats, Run
from tare.samples.notes import TraceWarning, grouped
from tare.samples.read.foreign_files import Files, RunFile, WarmUp, open_files, span_of
from tare.samples.read.sort_by_time import Requests
from tare.samples.sql import column as sql
from tare.samples.sql.group_numbers import Group

if TYPE_CHECKING:
    from pathlib import Path

    from tare.samples.sql.table import Table


UNTIMED = None, None


def experiment_of(
    files: Files, baseline: str, paired: bool, budget: float, primary: str
) -> Experiment:
    """Summaries of every file, ready to be judged; `budget` is a fraction."""
    extents = _extents(files.runs)
    counted = [
        (number, file, histogram)
        for number, file in enumerate(files.runs, start=1)
        if isinstance(file.requests, Counted)
        for histogram in file.requests.histograms
    ]
    steps: dict[tuple[str, str, str], float] = {}
    for _, _, histogram in counted:
        for metric, width in histogram.steps().items():
            key = "", histogram.span, metric
            steps[key] = max(steps.get(key, 0.0), width)
    stats_of = _load_stats(files)
    rates = _throughputs(extents, counted)
    histograms = [
        with_rates(_run_of_histogram(file, number, histogram), rates)
        for number, file, histogram in counted
    ]
    between = distances([(number, histogram) for number, _, histogram in counted])

    def times(group: Group) -> tuple[int | None, int | None]:
        return extents[group].times if group in extents else UNTIMED

    def at(cut: CutSummary) -> Experiment:
        runs = [
            replace(
                with_rates(_run(files.runs[group[0] - 1], group, cut, times(group)), rates),
                steadiness=files.seen.kind(group),
                step_ns=files.seen.steps.get(group, 0),
                drift=cut.drifts.get(group),
                worth=files.seen.worth(group),
                beginning=files.seen.beginning(group),
                zeros=files.seen.zeros.get(group, 0),
                load_stats=stats_of.get(group, LoadStats()),
            )
            for group in files.seen.at_cut.groups
        ]
        every = [*runs, *histograms]
        every = sorted([*every, *_empty(files, every)], key=lambda run: (run.run, run.span))
        return Experiment(
            tuple(every),
            baseline,
            paired,
            budget,
            primary,
            distances=between | dict(cut.distances),
            widths=steps,
        )

    traced = _traces(files)
    return replace(
        at(files.seen.at_cut),
        warnings=(*files.warnings, *_trace_warnings(files, traced)),
        traces=traced.of,
        structures=traced.structures,
        calls=traced.calls,
        cuts={name: at(cut) for name, cut in files.seen.others.items()},
    )


def _load_stats(files: Files) -> dict[Group, LoadStats]:
    found: dict[Group, LoadStats] = {}
    for number, table in _tables(files):
        found |= load_stats(table, [group for group in files.seen.sizes if group[0] == number])
    return found


def _traces(files: Files) -> Traces:
    found = Traces()
    for number, table in _tables(files):
        first = {group: cut for group, cut in files.seen.first.items() if group[0] == number}
        found.add(traces(table, first))
    return found


def _trace_warnings(files: Files, traced: Traces) -> Iterator[str]:
    """What is wrong with the traces of the files."""
    runs = [(files.runs[number - 1], lines) for number, lines in traced.lines.items()]
    lines = [(file.condition, file.path, line) for file, lines in runs for line in lines]
    return map(TraceWarning, grouped(lines, "file"))


def _tables(files: Files) -> Iterator[tuple[int, Table]]:
    """The requests of each run that has them."""
    for number, file in enumerate(files.runs, start=1):
        if isinstance(file.requests, Requests):
            table = file.requests.table
            yield number, table.mutate(run=sql.literal(number), span=span_of(table))


@dataclass(frozen=True)
class _Extent:
    """The first start and the last end of a run and span, and the successful requests between."""

    first: int
    last: int
    answered: int
    dated: bool
    """Whether both times count from 1970."""

    @property
    def times(self) -> tuple[int | None, int | None]:
        return (self.first, self.last) if self.dated else UNTIMED


def _extents(runs: Sequence[RunFile]) -> dict[Group, _Extent]:
    """Of every run and span with start times."""
    found: dict[Group, _Extent] = {}
    for number, file in enumerate(runs, start=1):
        if not isinstance(file.requests, Requests) or not file.requests.timed:
            continue
        table = file.requests.table
        start: Any = table.start_ns
        end: Any = table.start_ns + table.duration_ns
        rows = table.group_by(span=span_of(table)).aggregate(
            first=start.min(), last=end.max(), answered=table.ok.cast("int64").sum()
        )
        for row in rows.rows():
            dated = not file.requests.since_start
            extent = _Extent(row["first"], row["last"], row["answered"], dated)
            found[number, row["span"]] = extent
    return found


def _throughputs(
    extents: Mapping[Group, _Extent], counted: Sequence[tuple[int, RunFile, Histogram]]
) -> dict[Group, float]:
    """Successful requests per second of each run and span whose times are known."""
    known = [
        (group, extent.first, extent.last, extent.answered) for group, extent in extents.items()
    ]
    known += [
        ((number, histogram.span), histogram.started_ns, histogram.ended_ns, histogram.answered)
        for number, _, histogram in counted
        if histogram.started_ns is not None and histogram.ended_ns is not None
    ]
    return {
        group: 1e9 * answered / (last - first)
        for group, first, last, answered in known
        if answered > 0 and last > first
    }


def read_files(
    conditions: Mapping[str, Sequence[Path]],
    baseline: str,
    *,
    paired: bool = False,
    warm_up: WarmUp = 0,
    budget: float = 0.03,
    primary: str = "p50",
    options: ImportOptions = NOTHING,
) -> Experiment:
    """Reads files, a file a run, and summarises them; see `open_files` and `experiment_of`."""
    return experiment_of(
        open_files(conditions, warm_up, options), baseline, paired, budget, primary
    )


def _run(file: RunFile, group: Group, cut: CutSummary, times: tuple[int | None, int | None]) -> Run:
    found = cut.groups.get(group)
    requests, errors = (found.requests, found.errors) if found else (0, 0)
    assert isinstance(file.requests, Requests)
    reason = file.requests.stepped
    if requests == errors:
        reason = "no successful request after the warm-up"
    return Run(
        environment="",
        condition=file.condition,
        block=file.block,
        run=group[0],
        span=group[1],
        requests=requests,
        errors=errors,
        answered=requests - errors,
        started_ns=times[0],
        ended_ns=times[1],
        endpoint=file.path,
        summaries=cut.summaries(group),
        quantiles=cut.shape(group),
        lost=file.requests.lost,
        assumed_unit=file.requests.assumed_unit,
        valid=reason is None,
        reason=None if reason is None else f"{file.path}: {reason}",
    )


def _run_of_histogram(file: RunFile, number: int, histogram: Histogram) -> Run:
    return Run(
        environment="",
        condition=file.condition,
        block=file.block,
        run=number,
        span=histogram.span,
        requests=histogram.answered + histogram.errors,
        errors=histogram.errors,
        answered=histogram.answered,
        started_ns=histogram.started_ns,
        ended_ns=histogram.ended_ns,
        endpoint=file.path,
        summaries=histogram.summaries(),
        quantiles=histogram.quantiles(SHAPE) if histogram.answered else {},
        zeros=int(histogram.requests[histogram.high <= 0].sum()),
        valid=histogram.answered > 0,
        reason=None if histogram.answered else f"{file.path}: no successful request",
    )


def _empty(files: Files, others: Sequence[Run]) -> Iterator[Run]:
    """Invalid runs of files without requests, of each span that their conditions' `others` have."""
    spans: dict[str, set[str]] = {}
    for run in others:
        spans.setdefault(run.condition, set()).add(run.span)
    for number, file in enumerate(files.runs, start=1):
        for span in spans[file.condition] if file.requests is None else ():
            yield Run(
                environment="",
                condition=file.condition,
                block=file.block,
                run=number,
                span=span,
                requests=0,
                errors=0,
                answered=0,
                started_ns=None,
                endpoint=file.path,
                summaries={},
                valid=False,
                reason=file.reason,
            )
