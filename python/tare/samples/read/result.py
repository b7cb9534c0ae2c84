# SPDX-License-Identifier: Apache-2.0
"""Opens a result folder that the lab wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.describe.disturbance import LeftOut, find_left_out
from tare.samples.describe.rates import Counted, counted
from tare.samples.describe.usable_rows import usable
from tare.samples.engines import Engine
from tare.samples.engines.database import without_password
from tare.samples.manifest import Manifest, RunEntry, read_manifest
from tare.samples.model import REQUEST
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import connect, first_line, latency, of_engine, rows_of
from tare.samples.sql.group_numbers import of_runs

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table

_SLICES = 2**32
_ENGINES = (
    "duckdb",
    "_duckdb",
    "ibis",
    "pyarrow",
    "pyspark",
    "py4j",
    "clickhouse_connect",
    "trino",
)
"""Whose errors are about what they were asked to read: where their classes are defined."""


@dataclass(frozen=True)
class Result:
    """An opened result folder."""

    folder: Path
    backend: Database
    manifest: Manifest
    left_out: LeftOut
    engine: Engine | None = None
    """Where its samples are counted, if not in `backend`."""

    @cached_property
    def _rows(self) -> Table | None:
        engine = self.engine or Engine("duckdb", self.backend)
        table = engine.table(self.folder, "samples")
        if table is None or engine.reads_files:
            return table
        experiment = self.manifest.experiment
        if experiment and "experiment" in table.columns:
            table = table.filter(table.experiment.cast("string") == experiment)
        return self._checked(table)

    def _checked(self, table: Table) -> Table:
        """A database's table, which anything may have been loaded into.

        Raises InputError where a valid run has another number of requests than were measured.
        """
        found = _whole(table)
        for entry in self.manifest.runs:
            row, requests = found.get(entry.run), entry.requests
            if row and requests and entry.valid and requests not in (row["rows"], row["requests"]):
                raise InputError(
                    f"{self.folder}: run {entry.run} has {requests:,} requests, and"
                    f" {row['requests']:,} in the table; load all of this experiment, once, and"
                    " with the column experiment where there are others"
                )
        return table

    @cached_property
    def altered(self) -> dict[int, str]:
        """Of valid runs whose samples are not those that were measured, what differs."""
        counts = self._counted
        odd = [
            entry
            for entry in self.manifest.runs
            if entry.valid
            and (found := counts.get(entry.run)) is not None
            and _differs(entry, [found.rows], [found.failed])
        ]
        table = self._rows
        if not odd or table is None:
            return {}
        whole = _whole(of_runs(table, [entry.run for entry in odd]))
        return {
            entry.run: _difference(entry, requests, failed)
            for entry in odd
            if _differs(
                entry,
                [counts[entry.run].rows, requests := whole[entry.run]["requests"]],
                [counts[entry.run].failed, failed := whole[entry.run]["failed"]],
            )
        }

    @cached_property
    def _counted(self) -> dict[int, Counted]:
        """What one pass over all rows counts of each run."""
        table = self._rows
        if table is None:
            return {}
        return counted(table, usable(table, _unanswered(table)), _ok(table))

    @property
    def rows(self) -> int:
        """How many rows all runs have, of requests and of spans."""
        return sum(counts.rows for counts in self._counted.values())

    @cached_property
    def lost(self) -> dict[int, int]:
        """How many rows of each run have no usable time; runs without such rows are absent."""
        return {run: counts.lost for run, counts in self._counted.items() if counts.lost}

    @cached_property
    def throughputs(self) -> dict[int, float]:
        """Successful requests per second of each run, as `rates.throughputs` has them, where all
        rows have one span."""
        return {
            run: counts.rate for run, counts in self._counted.items() if counts.rate is not None
        }

    def samples(self) -> Table | None:
        """All samples of all runs with `latency_ns` and `left_out`; None when there are none.

        Rows that are no requests are not among them.
        """
        table = self._rows
        if table is None:
            return None
        if self.lost:
            table = table.filter(usable(table, _unanswered(table)))
        table = table.mutate(latency_ns=latency(table), ok=_ok(table), span=_span(table))
        if not self.left_out.slices or "slice" not in table.columns:
            return table.mutate(left_out=functions_of(table).literal(False))
        # A set that every engine looks up at once; not all take a table from memory to join with.
        place: Any = table.run.cast("int64") * _SLICES + table.slice.cast("int64")
        hit = [run * _SLICES + number for run, number in sorted(self.left_out.slices)]
        return table.mutate(left_out=place.isin(hit).fill_null(False))


def _differs(entry: RunEntry, requests: list[int], errors: list[int]) -> bool:
    """Whether a run had other numbers of requests or errors than each of these."""
    return entry.requests not in (None, *requests) or entry.errors not in (None, *errors)


def _difference(entry: RunEntry, requests: int, errors: int) -> str:
    """The reason of a run with other numbers than the manifest states."""
    numbers = ((entry.requests, requests, "requests"), (entry.errors, errors, "errors"))
    stated = [one for one in numbers if one[0] is not None]
    measured = " and ".join(f"{number:,} {name}" for number, _, name in stated)
    found = " and ".join(f"{number:,}" for _, number, _ in stated)
    return f"the manifest has {measured}, and the samples have {found}"


def _whole(table: Table) -> dict[int, dict[str, Any]]:
    """The numbers of each run: of rows, and of requests and failed requests among them.

    Where all rows have names of spans, each counts as a request.
    """
    marked = table.select("run", whole=_span(table) == REQUEST, failed=~_ok(table))
    failed: Any = marked.failed.cast("int64")
    counted = marked.group_by("run").aggregate(
        rows=marked.count(),
        failed=failed.sum(),
        whole=marked.whole.cast("int64").sum(),
        failed_whole=failed.sum(where=marked.whole),
    )
    return {
        row["run"]: {
            "rows": row["rows"],
            "requests": row["whole"] or row["rows"],
            "failed": row["failed_whole"] if row["whole"] else row["failed"],
        }
        for row in rows_of(counted)
    }


def _ok(rows: Table) -> Any:
    sql = functions_of(rows)
    return rows.ok.fill_null(False) if "ok" in rows.columns else sql.literal(True)


def _span(rows: Table) -> Any:
    sql = functions_of(rows)
    return (
        rows.span.cast("string").fill_null(REQUEST)
        if "span" in rows.columns
        else sql.literal(REQUEST)
    )


def _unanswered(rows: Table) -> Any:
    return ~_ok(rows) & rows.duration_ns.isnull()


def open_result(
    folder: Path, backend: Database | None = None, engine: Engine | None = None
) -> Result:
    """Opens a result folder. Raises InputError when it is none."""
    manifest = read_manifest(folder).as_compared()
    own = connect() if backend is None else backend
    return Result(folder, own, manifest, find_left_out(own, folder, manifest), engine)


@contextmanager
def readable(folder: Path, engine: str | None = None) -> Iterator[None]:
    """Turns an engine's errors about tables of a result into one InputError.

    `engine` is the engine that a person named.
    """
    try:
        yield
    except Exception as error:
        if of_engine(error) not in _ENGINES:
            raise
        why = f"a table of the result cannot be read: {first_line(error)}"
        if engine is not None:
            raise InputError(f"--engine {without_password(engine)}: {folder}: {why}") from error
        raise InputError(
            f"{folder}: {why}; remove a damaged file to continue without its run"
        ) from error
