# SPDX-License-Identifier: Apache-2.0
"""JMeter's result file (JTL) as CSV with a header: start and elapsed time in whole ms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.formats.csv_file import ROW, equal_rows, read_text
from tare.samples.formats.labels import mixed
from tare.samples.formats.source import Source
from tare.samples.formats.times import bounded, nanoseconds
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows
from tare.samples.sql.table import fresh_name

if TYPE_CHECKING:
    from tare.samples.sql.table import Database, Table


# JMeter's TransactionController.NUMBER_OF_SAMPLES_IN_TRANSACTION_PREFIX.
TRANSACTION = "Number of samples in transaction"
APART = "--columns start=timeStamp,duration=elapsed,ok=success,span=label --unit ms"


def read(backend: Database, path: Path) -> Source:
    """Reads timeStamp and elapsed, and where they exist success, responseCode and bytes."""
    table, rejected = read_text(backend, path)
    missing = {"timeStamp", "elapsed"} - set(table.columns)
    if missing:
        raise InputError(
            f"{path}:1: no column {' or '.join(sorted(missing))}; expected a JTL file in CSV form"
            " with its header (jmeter.save.saveservice.print_field_names=true)"
        )
    source = from_fields(table, path, f"{APART} compares each by itself")
    return replace(source, rejected=rejected, duplicates=equal_rows(table))


def from_fields(table: Table, path: Path, remedy: str, notes: tuple[str, ...] = ()) -> Source:
    """A source from JMeter's fields as texts under the names of its CSV, and `ROW`.

    `remedy` is how to tell labels apart.
    """

    _require_numbers(table, path)
    table, sums = _without_sums(table)
    kinds = mixed(table, "label", remedy) if "label" in table.columns else ()
    columns: dict[str, Any] = {"ok": sql.literal(True)}
    if "success" in table.columns:
        columns["ok"] = (table.success.lower() == "true").fill_null(False)
    if "responseCode" in table.columns:
        columns["status"] = table.responseCode.try_cast("int32").fill_null(0)
    if "bytes" in table.columns:
        columns["bytes"] = table.bytes.try_cast("int64")
    samples = table.select(
        row=table[ROW],
        start_ns=nanoseconds(table.timeStamp, "ms"),
        duration_ns=nanoseconds(table.elapsed, "ms"),
        **columns,
    )
    note = "JMeter rounds to whole milliseconds: smaller differences cannot be seen"
    return Source(samples, notes=(note, *notes, *sums, *kinds))


def _require_numbers(table: Table, path: Path) -> None:
    first = [row["timeStamp"] for row in table.limit(1).select("timeStamp").rows()]
    number = nanoseconds(table.timeStamp, "ms").notnull()
    if first and not count_rows(table.filter(number).limit(1)):
        raise InputError(
            f"{path}: timeStamp is '{first[0]}', not a number; write it with"
            " jmeter.save.saveservice.timestamp_format=ms, or read this file without it:"
            " --columns duration=elapsed,ok=success --unit ms"
        )


def _without_sums(table: Table) -> tuple[Table, tuple[str, ...]]:
    """Leaves out rows of a Transaction Controller whose requests have rows of their own.

    Such a row follows the last of its requests in their thread or, as a parent sample, stands
    before the first. A row without them, as in XML where they are inside of it, stays.
    """

    if "responseMessage" not in table.columns:
        return table, ()
    transaction: Any = table.responseMessage.startswith(TRANSACTION)
    if not count_rows(table.filter(transaction).limit(1)):
        return table, ()
    threads = "threadName" if "threadName" in table.columns else None
    start: Any = bounded(nanoseconds(table.timeStamp, "ms"))
    end = start + bounded(nanoseconds(table.elapsed, "ms"))
    thread = sql.window(group_by=threads, order_by=ROW)
    follows: Any = start.lag().over(thread) >= start
    # Either: whole milliseconds let a request begin, or end, with what it is part of.
    precedes: Any = (start.lead().over(thread) < end) | (end.lead().over(thread) <= end)
    doubled = fresh_name("doubled")
    marked = table.mutate(**{doubled: (transaction & (follows | precedes)).fill_null(False)})
    number = count_rows(marked.filter(marked[doubled]))
    note = f"{number:,} rows of transactions left out: their requests have their own rows"
    return marked.filter(~marked[doubled]).drop(doubled), (note,) if number else ()
