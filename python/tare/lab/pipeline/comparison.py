# SPDX-License-Identifier: Apache-2.0
"""Whether the spans that a pipeline stored are those that Tare's receiver got."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tare.samples.manifest import Collected

if TYPE_CHECKING:
    import pyarrow as pa

MICROSECOND = 1_000
_KEYS = ["trace_id", "span_id"]


def compared(received: pa.Table, queued: int, stored: pa.Table) -> Collected:
    """Counts of distinct spans, by trace and span; `queued` are messages of the topic.

    Both tables have `trace_id`, `span_id` and `duration_ns`. Stored durations are whole
    microseconds: a duration is equal if the received duration, rounded down, is the same.
    """
    import pyarrow.compute as pc

    own, theirs = _distinct(received, "received_ns"), _distinct(stored, "stored_ns")
    joined = own.join(theirs, _KEYS, join_type="full outer")
    known, found = joined["received_ns"], joined["stored_ns"]
    both = joined.filter(pc.and_(pc.is_valid(known), pc.is_valid(found)))
    in_us: Any = [pc.divide(both[name], MICROSECOND) for name in ("received_ns", "stored_ns")]
    return Collected(
        received=own.num_rows,
        queued=queued,
        stored=theirs.num_rows,
        missing=_count(pc.is_null(found)),
        additional=_count(pc.is_null(known)),
        different=_count(pc.not_equal(*in_us)),
    )


def incomplete(pipeline: str, found: Collected) -> str | None:
    """A warning about spans that are lost, unknown or different; None if all are equal."""
    if found.is_whole:
        return None
    lost = []
    if found.missing:
        before = max(found.received - found.queued, 0)
        where = []
        if before:
            where.append(f"{before:,} before Kafka: enlarge queue of [collect]")
        if found.missing > before:
            where.append(f"{found.missing - before:,} between Kafka and Elasticsearch")
        lost.append(
            f"Elasticsearch lacks {found.missing:,} of {found.received:,} spans that Tare received"
            f" ({'; '.join(where)})"
        )
    if found.additional:
        lost.append(f"it has {found.additional:,} spans that Tare did not receive")
    if found.different:
        lost.append(f"{found.different:,} spans have another duration")
    return f"{pipeline}: incomplete: {'; '.join(lost)}"


def collected(run: str, found: Collected) -> str:
    """The counts of a run, for a person."""
    return (
        f"spans of {run}: {found.received:,} received, {found.queued:,} in Kafka,"
        f" {found.stored:,} stored; {'all durations are equal' if found.is_whole else 'incomplete'}"
    )


def _count(which: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(which).as_py() or 0)


def _distinct(table: pa.Table, name: str) -> pa.Table:
    """One row per span: an exporter may send spans twice."""
    columns = table.select([*_KEYS, "duration_ns"])
    for position, key in enumerate(_KEYS):
        columns = columns.set_column(position, key, columns[key].cast("string"))
    first = columns.group_by(_KEYS).aggregate([("duration_ns", "min")])
    return first.select([*_KEYS, "duration_ns_min"]).rename_columns([*_KEYS, name])
