# SPDX-License-Identifier: Apache-2.0
"""The spans of a run as arrays: names, clocks, and the trees of their traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.samples.formats.span_names import kind_of
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import release, rows_of
from tare.stats.forest import Forest

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from tare.samples.sql.table import Table

SPANS = 1_000_000
"""Of a run with more spans, a random selection of traces is used."""
PARTS = 1_000_000
ARRAYS = ("name", "clock", "trace", "caller", "lost", "ok", "left_out", "place", "clock_error")


@dataclass(frozen=True)
class Clock:
    """What a span's times are read from: a service, and where it runs; None if not recorded."""

    service: str | None
    host: str | None


@dataclass(frozen=True, eq=False)
class SpanArrays:
    """The spans (n,) of one run; `names` and `clocks` have what the numbers in `name` and `clock`
    mean."""

    names: list[str]
    clocks: list[Clock]
    name: npt.NDArray[np.int64]
    clock: npt.NDArray[np.int64]
    trace: npt.NDArray[np.int64]
    caller: npt.NDArray[np.int64]
    """A hash of the parent's id, whether the parent was recorded or not."""
    lost: npt.NDArray[np.bool_]
    """Whether the span has the id of a parent, and that was not recorded."""
    ok: npt.NDArray[np.bool_]
    left_out: npt.NDArray[np.bool_]
    """Whether the span is in a slice that does not count, if that is known."""
    place: npt.NDArray[np.int64]
    clock_error: npt.NDArray[np.int64]
    """The bound on the error of its clock in ns; 0 if it is not known."""
    forest: Forest

    def select(self, spans: npt.NDArray[np.bool_]) -> SpanArrays:
        """Only `spans` (n,), as `Forest.select` has them."""
        arrays = {name: getattr(self, name)[spans] for name in ARRAYS}
        return replace(self, forest=self.forest.select(spans), **arrays)

    def of_kind(self, kind: str) -> npt.NDArray[np.bool_]:
        """Whether each span (n,) is of a kind: `client`, `server` ..."""
        return np.array([kind_of(name) == kind for name in self.names])[self.name]


def span_arrays(samples: Table) -> SpanArrays | None:
    """The spans in `samples` of one run that have ids and times; None if there are none."""
    sql = functions_of(samples)
    start: Any = samples.start_ns.cast("int64")
    timed = samples.filter(
        samples.trace_id.notnull() & samples.span_id.notnull() & samples.duration_ns.notnull()
    )

    def known(name: str, kind: str) -> Any:
        return timed[name].cast(kind) if name in timed.columns else sql.null(kind)

    timed = timed.select(
        "trace_id",
        "span_id",
        "parent_id",
        "span",
        "ok",
        place=timed.place.cast("int64"),
        begin=start,
        end=start + timed.duration_ns.cast("int64"),
        service=known("service", "string"),
        host=known("host", "string"),
        left_out=known("left_out", "boolean").fill_null(False),
        clock_error=known("clock_error_ns", "int64").fill_null(0),
    )
    (counted,) = rows_of(timed.aggregate(spans=timed.count()))
    if not counted["spans"]:
        return None
    if counted["spans"] > SPANS:
        share: Any = timed.trace_id.hash().abs() % PARTS
        timed = timed.filter(share < PARTS * SPANS // counted["spans"])
    # If several spans have the same id, it is the id of the first.
    order = ["trace_id", "span_id", "begin", "place"]
    number: Any = sql.row_number().over(order_by=order)
    numbered = timed.mutate(number=number).cache()
    ids = numbered.group_by("trace_id", "span_id").aggregate(parent=numbered.number.min())
    trace = numbered.group_by("trace_id").aggregate(trace=numbered.number.min())
    named = ids.select("trace_id", "parent", parent_id="span_id")
    joined = numbered.left_join(named, ["trace_id", "parent_id"]).inner_join(trace, "trace_id")
    columns = (
        *("number", "span", "service", "host", "parent", "trace", "ok", "left_out", "place"),
        *("clock_error", "begin", "end"),
    )
    caller: Any = joined.parent_id.fill_null("").hash()
    lost: Any = joined.parent_id.notnull() & joined.parent.isnull()
    table = joined.select(*columns, caller=caller, lost=lost).order_by("number").to_pyarrow()
    release(numbered)
    return _of_table(table)


def _of_table(table: pa.Table) -> SpanArrays:
    def whole(name: str) -> npt.NDArray[np.int64]:
        return np.asarray(table[name].to_numpy(), np.int64)

    def flags(name: str) -> npt.NDArray[np.bool_]:
        return np.asarray(table[name].to_numpy(zero_copy_only=False), np.bool_)

    names, name = _numbered(table, "span")
    services, service = _numbered(table, "service")
    hosts, host = _numbered(table, "host")
    both, clock = np.unique(service * len(hosts) + host, return_inverse=True)
    parent = np.asarray(table["parent"].fill_null(-1).to_numpy(), np.int64)
    return SpanArrays(
        [name or "" for name in names],
        [Clock(services[pair // len(hosts)], hosts[pair % len(hosts)]) for pair in both.tolist()],
        name,
        clock.astype(np.int64),
        whole("trace"),
        whole("caller"),
        flags("lost"),
        flags("ok"),
        flags("left_out"),
        whole("place"),
        whole("clock_error"),
        # A span that is its own parent has no parent.
        Forest(
            np.where(parent == np.arange(parent.size), -1, parent), whole("begin"), whole("end")
        ),
    )


def _numbered(table: pa.Table, column: str) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The different texts of a column, null too, and the number of each row's text (n,)."""
    found = table[column].combine_chunks().dictionary_encode(null_encoding="encode")
    return found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.int64)
