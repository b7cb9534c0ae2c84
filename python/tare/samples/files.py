# SPDX-License-Identifier: Apache-2.0
"""Runs from files that Tare did not produce: one file a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tare.errors import InputError
from tare.samples.engine import connect, count_rows, summaries
from tare.samples.formats import read
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
    requests: Requests


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

        # Not by `row` itself, which counts the rows of other metrics and conditions too.
        tables = (
            one.requests.table.order_by("row").limit(None, offset=self.warm_up)
            for one in self.runs
            if one.condition == condition
        )
        kept = [table.filter(table.ok).order_by("row").duration_ns for table in tables]
        return np.concatenate([one.to_pyarrow().to_numpy().astype(np.float64) for one in kept])


def open_files(conditions: Mapping[str, Sequence[Path]], warm_up: WarmUp = 0) -> Files:
    """Reads the files of each condition.

    `warm_up` is a number of first requests in time order, or "auto": the longest of the files'
    warm-ups by MSER-5, for all alike. Raises InputError for what cannot be read.
    """
    backend = connect()
    runs = tuple(
        RunFile(str(path), condition, block, _requests(backend, path, condition))
        for condition, paths in conditions.items()
        for block, path in enumerate(paths, start=1)
    )
    warnings = [warning for one in runs for warning in one.requests.warnings]
    cut, more = _warm_up(runs, warm_up)
    for one in runs:
        count = count_rows(one.requests.table)
        if cut >= count:
            raise InputError(
                f"{one.path}: {count:,} requests, all of them within the warm-up of {cut:,};"
                " choose a smaller --warmup"
            )
    return Files(backend, runs, cut, (*warnings, *more))


def experiment_of(
    files: Files, baseline: str, paired: bool, budget: float, primary: str
) -> Experiment:
    """Summaries of every file, ready to be judged; `budget` is a fraction."""
    import ibis

    tables = []
    for number, one in enumerate(files.runs, start=1):
        table = one.requests.table
        end: Any = table.start_ns + table.duration_ns if one.requests.timed else ibis.null("int64")
        start: Any = table.start_ns if one.requests.timed else ibis.null("int64")
        kept = table.filter(table.place >= files.warm_up)
        span: Any = (
            kept.span.fill_null(REQUEST) if "span" in kept.columns else ibis.literal(REQUEST)
        )
        tables.append(
            kept.select(
                run=ibis.literal(number),
                span=span,
                ok=kept.ok,
                latency_ns=kept.latency_ns,
                start_ns=start,
                end_ns=end,
            )
        )
    every = ibis.union(*tables) if len(tables) > 1 else tables[0]
    by = ["run", "span"]
    times = every.group_by(by).aggregate(first=every.start_ns.min(), last=every.end_ns.max())
    rows = summaries(every, by).join(times, by).order_by(by).to_pyarrow().to_pylist()
    runs = tuple(_run(files.runs[row["run"] - 1], row) for row in rows)
    return Experiment(runs, baseline, paired, budget, primary, warnings=files.warnings)


def read_files(
    conditions: Mapping[str, Sequence[Path]],
    baseline: str,
    *,
    paired: bool = False,
    warm_up: WarmUp = 0,
    budget: float = 0.03,
    primary: str = "p50",
) -> Experiment:
    """Reads files, one a run, and summarises them; see `open_files` and `experiment_of`."""
    return experiment_of(open_files(conditions, warm_up), baseline, paired, budget, primary)


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


def _requests(backend: Backend, path: Path, condition: str) -> Requests:
    requests = tidy(backend, read(backend, path), str(path))
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
    window = ibis.window(order_by="place")
    table = table.mutate(place=ibis.row_number().over(window))
    stored = backend.create_table(ibis.util.gen_name("condition"), table, temp=True)
    note = f"{path}: holds {len(names)} conditions; only the requests of '{condition}' were taken"
    return Requests(stored, requests.ordered, requests.timed, (*requests.warnings, note))


def _values(table: Table, column: str) -> list[str]:
    found = table.select(column).distinct().order_by(column).to_pyarrow()[column].to_pylist()
    return [str(one) for one in found if one is not None]


def _warm_up(runs: Sequence[RunFile], asked: WarmUp) -> tuple[int, list[str]]:
    if asked == 0:
        return 0, []
    for one in runs:
        if not one.requests.ordered:
            raise InputError(f"{one.path}: has no order of requests, so --warmup cannot be used")
    if asked != "auto":
        return asked, []
    warnings, cuts = [], [0]
    for one in runs:
        table = one.requests.table.order_by("place")
        cut = mser5(table.latency_ns.to_pyarrow().to_numpy())
        if cut is None:
            warnings.append(
                f"{one.path}: no steady state seen (MSER-5 puts the end of the warm-up past half"
                " of the run, or the run is too short): nothing of it counts towards the warm-up"
            )
        else:
            cuts.append(cut)
    warnings.append(f"warm-up: the first {max(cuts):,} requests of every run are left out (MSER-5)")
    return max(cuts), warnings
