# SPDX-License-Identifier: Apache-2.0
"""Runs from files that Tare did not produce: one file a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tare.errors import InputError
from tare.samples.counted import Counted, Histogram
from tare.samples.engine import connect, summaries
from tare.samples.formats import read
from tare.samples.formats.asked import NOTHING, Asked
from tare.samples.model import REQUEST, Experiment, Run
from tare.samples.tidy import Requests, tidy
from tare.stats.warm_up import mser5

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table

WarmUp = int | Literal["auto"]


@dataclass(frozen=True)
class RunFile:
    """One file as one run, warm-up still in it."""

    path: str
    condition: str
    block: int
    requests: Requests | Counted


@dataclass(frozen=True)
class Files:
    """All files of one comparison, and how many first requests of each are warm-up."""

    backend: Backend
    runs: tuple[RunFile, ...]
    warm_up: int
    warnings: tuple[str, ...]

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

    `warm_up` is a number of first requests in time order, or "auto": the longest of the files'
    warm-ups by MSER-5, for all alike. Raises InputError for what cannot be read.
    """
    backend = connect()
    runs = tuple(
        RunFile(str(path), condition, block, _requests(backend, path, condition, asked))
        for condition, paths in conditions.items()
        for block, path in enumerate(paths, start=1)
    )
    warnings = [warning for one in runs for warning in _warnings(one)]
    cut, more = _warm_up(runs, warm_up)
    if cut:
        more += [warning for one in runs for warning in _lost(one, cut)]
    return Files(backend, runs, cut, (*warnings, *more))


def experiment_of(
    files: Files, baseline: str, paired: bool, budget: float, primary: str
) -> Experiment:
    """Summaries of every file, ready to be judged; `budget` is a fraction."""
    runs = sorted(
        [
            *_runs_of_requests(files),
            *(
                _run_of_histogram(one, number, histogram)
                for number, one in enumerate(files.runs, start=1)
                if isinstance(one.requests, Counted)
                for histogram in one.requests.histograms
            ),
        ],
        key=lambda run: (run.run, run.span),
    )
    return Experiment(tuple(runs), baseline, paired, budget, primary, warnings=files.warnings)


def _runs_of_requests(files: Files) -> list[Run]:
    import ibis

    tables = []
    for number, one in enumerate(files.runs, start=1):
        if isinstance(one.requests, Counted):
            continue
        table = one.requests.table
        timed = one.requests.timed and not one.requests.since_start
        end: Any = table.start_ns + table.duration_ns if timed else ibis.null("int64")
        start: Any = table.start_ns if timed else ibis.null("int64")
        kept = table.filter(table.place >= files.warm_up)
        tables.append(
            kept.select(
                run=ibis.literal(number),
                span=_span(kept),
                ok=kept.ok,
                latency_ns=kept.latency_ns,
                start_ns=start,
                end_ns=end,
            )
        )
    if not tables:
        return []
    every = ibis.union(*tables) if len(tables) > 1 else tables[0]
    by = ["run", "span"]
    times = every.group_by(by).aggregate(first=every.start_ns.min(), last=every.end_ns.max())
    rows = summaries(every, by).join(times, by).order_by(by).to_pyarrow().to_pylist()
    return [_run(files.runs[row["run"] - 1], row) for row in rows]


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

    if isinstance(file.requests, Counted):
        file.requests.require_few(file.path)
        return np.concatenate([one.values() for one in file.requests.histograms])
    return _in_order(file.requests.table, warm_up)


def _by_span(file: RunFile, warm_up: int) -> dict[str, npt.NDArray[np.float64]]:
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
    return [*file.requests.warnings]


def _run(file: RunFile, row: Mapping[str, Any]) -> Run:
    counted = row["requests"] > row["errors"]
    return Run(
        environment="",
        condition=file.condition,
        block=file.block,
        run=row["run"],
        span=row["span"],
        requests=row["requests"],
        errors=row["errors"],
        answered=row["requests"] - row["errors"],
        started_ns=row["first"],
        ended_ns=row["last"],
        endpoint=file.path,
        summaries={name: row[name] for name in ("p50", "p95", "p99", "mean")} if counted else {},
        valid=counted,
        reason=None if counted else f"{file.path}: no successful request after the warm-up",
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
        valid=histogram.answered > 0,
        reason=None if histogram.answered else f"{file.path}: no successful request",
    )


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


def _warm_up(runs: Sequence[RunFile], asked: WarmUp) -> tuple[int, list[str]]:
    if asked == 0:
        return 0, []
    for one in runs:
        if isinstance(one.requests, Counted):
            raise InputError(
                f"{one.path}: has no order of requests, only how many took how long,"
                " so --warmup cannot be used; let the load generator warm up before it records"
            )
    if asked != "auto":
        return asked, []
    warnings, cuts = [], [0]
    for one in runs:
        found = [_steady_from(series) for series in _series(one)]
        known = [place for place in found if place is not None]
        if len(known) < len(found):
            warnings.append(
                f"{one.path}: no steady state seen (MSER-5 puts the end of the warm-up past half"
                " of the run, or the run is too short): nothing of it counts towards the warm-up"
            )
        else:
            cuts += known
    warnings.append(f"warm-up: the first {max(cuts):,} requests of every run are left out (MSER-5)")
    return max(cuts), warnings


def _series(file: RunFile) -> list[Table]:
    """The requests that have a latency, one table a span."""
    assert isinstance(file.requests, Requests)
    table = file.requests.table
    table = table.mutate(span=_span(table)).filter(table.latency_ns.notnull())
    return [table.filter(table.span == name) for name in _values(table, "span")]


def _steady_from(requests: Table) -> int | None:
    """The place of the first request after the warm-up; None where there is no steady state."""
    found = requests.order_by("place").select("place", "latency_ns").to_pyarrow()
    cut = mser5(found["latency_ns"].to_numpy())
    # Those that failed without an answer have places too.
    return int(found["place"][cut].as_py()) if cut else cut


def _span(table: Table) -> Any:
    import ibis

    return table.span.fill_null(REQUEST) if "span" in table.columns else ibis.literal(REQUEST)


def _lost(file: RunFile, cut: int) -> Iterator[str]:
    """Spans that the warm-up leaves nothing of. Raises InputError where that is all of them."""
    assert isinstance(file.requests, Requests)
    table = file.requests.table
    counts = table.group_by(span=_span(table)).aggregate(count=table.count())
    rows = counts.order_by("span").to_pyarrow().to_pylist()
    lost = [row for row in rows if row["count"] <= cut]
    if len(lost) == len(rows):
        raise InputError(
            f"{file.path}: {sum(row['count'] for row in rows):,} requests, all of them within the"
            f" warm-up of {cut:,}; choose a smaller --warmup"
        )
    for row in lost:
        yield (
            f"{file.path}: '{row['span']}' has {row['count']:,} requests, all of them within the"
            f" warm-up of {cut:,}: left out"
        )
