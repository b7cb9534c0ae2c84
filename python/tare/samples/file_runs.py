# SPDX-License-Identifier: Apache-2.0
"""Files that were opened as runs of an experiment, ready to be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tare.samples.conduct import conduct
from tare.samples.counted import Counted, Histogram, distances
from tare.samples.files import Files, RunFile, WarmUp, open_files, span_of
from tare.samples.formats.asked import NOTHING, Asked
from tare.samples.looks import SHAPE, Look
from tare.samples.model import Conduct, Experiment, Run
from tare.samples.places import Group
from tare.samples.rates import throughputs, with_rates
from tare.samples.tidy import Requests

if TYPE_CHECKING:
    from pathlib import Path


UNTIMED = None, None


def experiment_of(
    files: Files, baseline: str, paired: bool, budget: float, primary: str
) -> Experiment:
    """Summaries of every file, ready to be judged; `budget` is a fraction."""
    times = _times(files.runs)
    counted = [
        (number, one, histogram)
        for number, one in enumerate(files.runs, start=1)
        if isinstance(one.requests, Counted)
        for histogram in one.requests.histograms
    ]
    histograms = [
        with_rates(_run_of_histogram(file, number, one), _throughput(number, one))
        for number, file, one in counted
    ]
    steps: dict[tuple[str, str, str], float] = {}
    for _, _, one in counted:
        for metric, width in one.steps().items():
            key = "", one.span, metric
            steps[key] = max(steps.get(key, 0.0), width)
    conducts, rates = _recorded(files)
    between = distances([(number, one) for number, _, one in counted])

    def at(one: Look) -> Experiment:
        runs = [
            replace(
                with_rates(
                    _run(files.runs[group[0] - 1], group, one, times.get(group, UNTIMED)), rates
                ),
                steadiness=files.seen.kind(group),
                step_ns=files.seen.steps.get(group, 0),
                drift=one.drifts.get(group),
                worth=files.seen.worth(group),
                zeros=files.seen.zeros.get(group, 0),
                conduct=conducts.get(group, Conduct()),
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
            distances=between | dict(one.distances),
            widths=steps,
        )

    return replace(
        at(files.seen.at_cut),
        warnings=files.warnings,
        cuts={name: at(other) for name, other in files.seen.others.items()},
    )


def _recorded(files: Files) -> tuple[dict[Group, Conduct], dict[Group, float]]:
    """How the load of each run and span went, and its requests per second."""
    import ibis

    found: dict[Group, Conduct] = {}
    rates: dict[Group, float] = {}
    for number, one in enumerate(files.runs, start=1):
        if isinstance(one.requests, Requests):
            table = one.requests.table.mutate(
                run=ibis.literal(number), span=span_of(one.requests.table)
            )
            found |= conduct(table, [group for group in files.seen.sizes if group[0] == number])
            rates |= throughputs(table)
    return found, rates


def _throughput(number: int, histogram: Histogram) -> dict[Group, float]:
    start, end = histogram.started_ns, histogram.ended_ns
    if start is None or end is None or end <= start or not histogram.answered:
        return {}
    return {(number, histogram.span): 1e9 * histogram.answered / (end - start)}


def _times(runs: Sequence[RunFile]) -> dict[Group, tuple[int | None, int | None]]:
    """The first start and the last end of every run and span that has times since 1970."""
    found: dict[Group, tuple[int | None, int | None]] = {}
    for number, one in enumerate(runs, start=1):
        if not isinstance(one.requests, Requests):
            continue
        if not one.requests.timed or one.requests.since_start:
            continue
        table = one.requests.table
        start: Any = table.start_ns
        end: Any = table.start_ns + table.duration_ns
        rows = table.group_by(span=span_of(table)).aggregate(first=start.min(), last=end.max())
        for row in rows.to_pyarrow().to_pylist():
            found[number, row["span"]] = row["first"], row["last"]
    return found


def read_files(
    conditions: Mapping[str, Sequence[Path]],
    baseline: str,
    *,
    paired: bool = False,
    warm_up: WarmUp = 0,
    budget: float = 0.03,
    primary: str = "p50",
    asked: Asked = NOTHING,
) -> Experiment:
    """Reads files, one a run, and summarises them; see `open_files` and `experiment_of`."""
    return experiment_of(open_files(conditions, warm_up, asked), baseline, paired, budget, primary)


def _run(file: RunFile, group: Group, one: Look, times: tuple[int | None, int | None]) -> Run:
    found = one.groups.get(group)
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
        summaries=one.summaries(group),
        quantiles=one.shape(group),
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
    for number, one in enumerate(files.runs, start=1):
        for span in spans[one.condition] if one.requests is None else ():
            yield Run(
                environment="",
                condition=one.condition,
                block=one.block,
                run=number,
                span=span,
                requests=0,
                errors=0,
                answered=0,
                started_ns=None,
                endpoint=one.path,
                summaries={},
                valid=False,
                reason=one.reason,
            )
