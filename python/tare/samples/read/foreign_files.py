# SPDX-License-Identifier: Apache-2.0
"""Runs from files that Tare did not produce: one file a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tare.errors import InputError, NoRequestsError
from tare.samples.counted import Counted
from tare.samples.describe.warm_up_cuts import CutSummaries, look, nothing
from tare.samples.formats import read
from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.model import REQUEST
from tare.samples.notes import grouped
from tare.samples.read.sort_by_time import Requests, tidy
from tare.samples.sql import column as sql
from tare.samples.sql.engine import connect, store
from tare.untrusted import listed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tare.samples.sql.table import Database, Table

WarmUp = int | Literal["auto"]


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

    backend: Database
    runs: tuple[RunFile, ...]
    seen: CutSummaries
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
            [_durations(file, self.warm_up) for file in self.runs if file.condition == condition]
        )

    def durations_by_run(self, condition: str) -> list[dict[str, npt.NDArray[np.float64]]]:
        """As `durations`, of each run of a condition by itself, and of each span in it."""
        return [_by_span(file, self.warm_up) for file in self.runs if file.condition == condition]


def open_files(
    conditions: Mapping[str, Sequence[Path]], warm_up: WarmUp = 0, options: ImportOptions = NOTHING
) -> Files:
    """Reads the files of each condition; `options` is what they do not say of themselves.

    `warm_up` is a number of first requests in time order, or "auto": of each span where all
    conditions have settled. Raises InputError for what cannot be read, and for a condition whose
    files all have no request.
    """
    backend = connect()
    runs = tuple(
        _run_file(backend, path, condition, block, options.of(condition))
        for condition, paths in conditions.items()
        for block, path in enumerate(paths, start=1)
    )
    for condition in conditions:
        empty = [
            file.reason for file in runs if file.condition == condition and file.requests is None
        ]
        if len(empty) == len(conditions[condition]):
            raise InputError(f"{empty[0]} (no file of '{condition}' has a request)")
    read = [file.requests for file in runs if isinstance(file.requests, Requests)]
    if read and read[0].ungrouped and all(requests.ungrouped for requests in read):
        raise InputError(read[0].ungrouped)
    lines = [
        (file.condition, file.path, line.removeprefix(f"{file.path}: "))
        for file in runs
        for line in _warnings(file)
    ]
    warnings = [*grouped(lines, "file")]
    for file in runs:
        if isinstance(file.requests, Counted) and warm_up not in (0, "auto"):
            raise InputError(
                f"{file.path}: contains counts of durations without an order of requests,"
                " so --warmup cannot be used; let the load generator warm up before it records"
            )
    seen = _look(runs, None if warm_up == "auto" else warm_up)
    warnings += seen.told()
    for number, file in enumerate(runs, start=1):
        warnings += _lost(file, number, seen)
    return Files(backend, runs, seen, tuple(warnings))


def _look(runs: Sequence[RunFile], warm_up: int | None) -> CutSummaries:

    tables = [
        file.requests.table.select(
            "place",
            "latency_ns",
            "ok",
            run=sql.literal(number),
            span=span_of(file.requests.table),
        )
        for number, file in enumerate(runs, start=1)
        if isinstance(file.requests, Requests)
    ]
    if not tables:
        return nothing()
    samples = sql.union(*tables) if len(tables) > 1 else tables[0]
    conditions = {number: ("", file.condition) for number, file in enumerate(runs, start=1)}
    return look(samples, conditions, warm_up)


def _durations(file: RunFile, warm_up: int) -> npt.NDArray[np.float64]:
    import numpy as np

    if file.requests is None:
        return np.empty(0)
    if isinstance(file.requests, Counted):
        file.requests.require_few(file.path)
        return np.concatenate([histogram.values() for histogram in file.requests.histograms])
    return _in_order(file.requests.table, warm_up)


def _by_span(file: RunFile, warm_up: int) -> dict[str, npt.NDArray[np.float64]]:
    if file.requests is None:
        return {}
    if isinstance(file.requests, Counted):
        file.requests.require_few(file.path)
        return {histogram.span: histogram.values() for histogram in file.requests.histograms}
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
    durations = kept.filter(kept.ok).order_by("row").select("duration_ns").arrays()["duration_ns"]
    return np.asarray(durations, dtype=np.float64)


def _warnings(file: RunFile) -> list[str]:
    if isinstance(file.requests, Counted):
        return [f"{file.path}: {note}" for note in file.requests.notes]
    if file.requests is None:
        return []
    return list(file.requests.warnings)


def _run_file(
    backend: Database, path: Path, condition: str, block: int, options: ImportOptions
) -> RunFile:
    try:
        requests = _requests(backend, path, condition, options)
    except NoRequestsError as error:
        return RunFile(str(path), condition, block, None, str(error))
    return RunFile(str(path), condition, block, requests)


def _requests(
    backend: Database, path: Path, condition: str, options: ImportOptions
) -> Requests | Counted:
    found = read(backend, path, options=options)
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
            f"{path}: has the conditions {listed(names)}, none of them '{condition}';"
            " use one of these names to select"
            " its requests"
        )

    table = requests.table.filter(requests.table.condition == condition)
    spans = ["span"] if "span" in table.columns else None
    window = sql.window(group_by=spans, order_by="place")
    table = table.mutate(place=sql.row_number().over(window))
    stored = store(backend, "condition", table)
    backend.drop_table(requests.table.get_name())
    note = f"{path}: holds {len(names)} conditions; only the requests of '{condition}' were taken"
    return replace(requests, table=stored, warnings=(*requests.warnings, note))


def _values(table: Table, column: str) -> list[str]:
    found = [row[column] for row in table.select(column).distinct().order_by(column).rows()]
    return [str(value) for value in found if value is not None]


def span_of(table: Table) -> Any:
    """The span of each request of a file's table."""

    return table.span.fill_null(REQUEST) if "span" in table.columns else sql.literal(REQUEST)


def _lost(file: RunFile, number: int, seen: CutSummaries) -> Iterator[str]:
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
