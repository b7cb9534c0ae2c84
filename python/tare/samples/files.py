# SPDX-License-Identifier: Apache-2.0
"""Runs from files that Tare did not produce: one file a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tare.errors import InputError, NoRequestsError
from tare.samples.conduct import conduct
from tare.samples.counted import Counted, Histogram, distances
from tare.samples.engine import connect
from tare.samples.formats import read
from tare.samples.formats.asked import NOTHING, Asked
from tare.samples.looks import SHAPE, Look, Looks, look, nothing
from tare.samples.model import REQUEST, Conduct, Experiment, Run
from tare.samples.places import Group
from tare.samples.span_tree import ahead
from tare.samples.tidy import Requests, tidy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table

WarmUp = int | Literal["auto"]
UNTIMED = None, None


@dataclass(frozen=True)
class RunFile:
    """One file as one run, warm-up still in it."""

    path: str
    condition: str
    block: int
    requests: Requests | Counted | None
    reason: str = ""
    """Why there are no `requests`; begins with the path."""


@dataclass(frozen=True)
class Files:
    """All files of one comparison, and what their requests say after the warm-up."""

    backend: Backend
    runs: tuple[RunFile, ...]
    seen: Looks
    warnings: tuple[str, ...]

    @property
    def warm_up(self) -> int:
        """How many first requests of each run are left out, of its longest-warming span."""
        return max(self.seen.cuts.values(), default=0)

    def durations(self, condition: str) -> npt.NDArray[np.float64]:
        """Durations in ns, shape (n,), of a condition's successful requests after warm-up.

        Warm-up and order are those of the file as it was written, as published analyses do.
        """
        import numpy as np

        return np.concatenate(
            [_durations(one, self.warm_up) for one in self.runs if one.condition == condition]
        )

    def durations_by_run(self, condition: str) -> list[dict[str, npt.NDArray[np.float64]]]:
        """As `durations`, of each run of a condition by itself, and of each span in it."""
        return [_by_span(one, self.warm_up) for one in self.runs if one.condition == condition]


def open_files(
    conditions: Mapping[str, Sequence[Path]], warm_up: WarmUp = 0, asked: Asked = NOTHING
) -> Files:
    """Reads the files of each condition; `asked` is what they do not say of themselves.

    `warm_up` is a number of first requests in time order, or "auto": of each span where all
    conditions have settled. Raises InputError for what cannot be read, and for a condition whose
    files all have no request.
    """
    backend = connect()
    runs = tuple(
        _run_file(backend, path, condition, block, asked.of(condition))
        for condition, paths in conditions.items()
        for block, path in enumerate(paths, start=1)
    )
    for condition in conditions:
        empty = [one.reason for one in runs if one.condition == condition and one.requests is None]
        if len(empty) == len(conditions[condition]):
            raise InputError(f"{empty[0]} (no file of '{condition}' has a request)")
    warnings = [warning for one in runs for warning in _warnings(one)]
    for one in runs:
        if isinstance(one.requests, Counted) and warm_up not in (0, "auto"):
            raise InputError(
                f"{one.path}: has no order of requests, only how many took how long,"
                " so --warmup cannot be used; let the load generator warm up before it records"
            )
    seen = _look(runs, None if warm_up == "auto" else warm_up)
    warnings += seen.told()
    for number, one in enumerate(runs, start=1):
        warnings += _lost(one, number, seen)
    return Files(backend, runs, seen, tuple(warnings))


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
    histograms = [_run_of_histogram(file, number, one) for number, file, one in counted]
    steps: dict[tuple[str, str, str], float] = {}
    for _, _, one in counted:
        for metric, width in one.steps().items():
            key = "", one.span, metric
            steps[key] = max(steps.get(key, 0.0), width)
    conducts = _conducts(files)
    between = distances([(number, one) for number, _, one in counted])

    def at(one: Look) -> Experiment:
        runs = [
            replace(
                _run(files.runs[group[0] - 1], group, one, times.get(group, UNTIMED)),
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


def _look(runs: Sequence[RunFile], warm_up: int | None) -> Looks:
    import ibis

    tables = [
        one.requests.table.select(
            "place",
            "latency_ns",
            "ok",
            run=ibis.literal(number),
            span=_span(one.requests.table),
        )
        for number, one in enumerate(runs, start=1)
        if isinstance(one.requests, Requests)
    ]
    if not tables:
        return nothing()
    samples = ibis.union(*tables) if len(tables) > 1 else tables[0]
    conditions = {number: ("", one.condition) for number, one in enumerate(runs, start=1)}
    return look(samples, conditions, warm_up)


def _conducts(files: Files) -> dict[Group, Conduct]:
    import ibis

    found: dict[Group, Conduct] = {}
    for number, one in enumerate(files.runs, start=1):
        if isinstance(one.requests, Requests):
            table = one.requests.table.mutate(
                run=ibis.literal(number), span=_span(one.requests.table)
            )
            found |= conduct(table, [group for group in files.seen.sizes if group[0] == number])
    return found


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
        rows = table.group_by(span=_span(table)).aggregate(first=start.min(), last=end.max())
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


def _durations(file: RunFile, warm_up: int) -> npt.NDArray[np.float64]:
    import numpy as np

    if file.requests is None:
        return np.empty(0)
    if isinstance(file.requests, Counted):
        file.requests.require_few(file.path)
        return np.concatenate([one.values() for one in file.requests.histograms])
    return _in_order(file.requests.table, warm_up)


def _by_span(file: RunFile, warm_up: int) -> dict[str, npt.NDArray[np.float64]]:
    if file.requests is None:
        return {}
    if isinstance(file.requests, Counted):
        file.requests.require_few(file.path)
        return {one.span: one.values() for one in file.requests.histograms}
    table = file.requests.table
    if "span" not in table.columns:
        return {REQUEST: _in_order(table, warm_up)}
    table = table.mutate(span=table.span.fill_null(REQUEST))
    return {
        span: _in_order(table.filter(table.span == span), warm_up)
        for span in _values(table, "span")
    }


def _in_order(table: Table, warm_up: int) -> npt.NDArray[np.float64]:
    """Durations of successful requests, without the first rows of the file."""
    import numpy as np

    # Not by `row` itself, which counts the rows of other metrics and conditions too.
    kept = table.order_by("row").limit(None, offset=warm_up)
    durations = kept.filter(kept.ok).order_by("row").duration_ns
    return np.asarray(durations.to_pyarrow().to_numpy().astype(np.float64))


def _warnings(file: RunFile) -> list[str]:
    if isinstance(file.requests, Counted):
        return [f"{file.path}: {note}" for note in file.requests.notes]
    if file.requests is None:
        return []
    return [*file.requests.warnings, *(f"{file.path}: {x}" for x in ahead(file.requests.table))]


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


def _run_file(backend: Backend, path: Path, condition: str, block: int, asked: Asked) -> RunFile:
    try:
        requests = _requests(backend, path, condition, asked)
    except NoRequestsError as error:
        return RunFile(str(path), condition, block, None, str(error))
    return RunFile(str(path), condition, block, requests)


def _requests(backend: Backend, path: Path, condition: str, asked: Asked) -> Requests | Counted:
    found = read(backend, path, asked=asked)
    if isinstance(found, Counted):
        return found.checked(str(path))
    requests = tidy(backend, found, str(path))
    if "condition" not in requests.table.columns:
        return requests
    names = _values(requests.table, "condition")
    if len(names) < 2:
        return requests
    if condition not in names:
        raise InputError(
            f"{path}: holds the conditions {', '.join(names)}, none of them '{condition}';"
            " name one of them to take its requests"
        )
    import ibis

    table = requests.table.filter(requests.table.condition == condition)
    spans = ["span"] if "span" in table.columns else None
    window = ibis.window(group_by=spans, order_by="place")
    table = table.mutate(place=ibis.row_number().over(window))
    stored = backend.create_table(ibis.util.gen_name("condition"), table, temp=True)
    backend.drop_table(requests.table.op().name)
    note = f"{path}: holds {len(names)} conditions; only the requests of '{condition}' were taken"
    return replace(requests, table=stored, warnings=(*requests.warnings, note))


def _values(table: Table, column: str) -> list[str]:
    found = table.select(column).distinct().order_by(column).to_pyarrow()[column].to_pylist()
    return [str(one) for one in found if one is not None]


def _span(table: Table) -> Any:
    import ibis

    return table.span.fill_null(REQUEST) if "span" in table.columns else ibis.literal(REQUEST)


def _lost(file: RunFile, number: int, seen: Looks) -> Iterator[str]:
    """Spans that the warm-up leaves nothing of. Raises InputError where that is all of them."""
    if not isinstance(file.requests, Requests):
        return
    sizes = {span: size for (run, span), size in seen.sizes.items() if run == number}
    lost = {span: size for span, size in sizes.items() if size <= seen.first[number, span]}
    if len(lost) == len(sizes):
        raise InputError(
            f"{file.path}: {sum(sizes.values()):,} requests, all of them within the"
            f" warm-up of {max(seen.cuts.values()):,}; choose a smaller --warmup"
        )
    for span, size in sorted(lost.items()):
        yield (
            f"{file.path}: '{span}' has {size:,} requests, all of them within the"
            f" warm-up of {seen.cuts['', span]:,}: left out"
        )
