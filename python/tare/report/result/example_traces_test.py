# SPDX-License-Identifier: Apache-2.0
"""One trace out of many, whatever files say of it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tare.report.result.example_traces import DEEPEST, Span, Trace, Wanted, examples
from tare.samples.sql.engine import connect
from tare.samples.sql.table import fresh_name

Row = tuple[str, str, str | None, str, int, int]
"""Trace, own id, id of the parent, name, start and duration."""


def read(
    rows: Sequence[Row], duration: float = 100, most: int = 10, first: int = 0, **columns: Any
) -> Trace | None:
    """The trace of about this duration in run 1; run 2 has spans with the same ids."""
    table = [
        {
            "run": run, "trace_id": trace, "span_id": own, "parent_id": parent, "span": name,
            "start_ns": start + run, "duration_ns": took * run, "ok": True, "left_out": False,
            "service": name.rpartition(": ")[0],
        } | columns
        for run in (1, 2)
        for trace, own, parent, name, start, took in rows
    ]  # fmt: skip
    samples = connect().create_table(fresh_name("spans"), pa.Table.from_pylist(table))
    (found,) = examples(samples, 1, [Wanted("order", first, duration)], most)
    return found


def shown(span: Span) -> list[Span]:
    return [span, *(below for child in span.children for below in shown(child))]


SHOP: Sequence[Row] = (
    ("t1", "a", None, "order", 0, 100),
    ("t1", "b", "a", "pay", 10, 50),
    ("t1", "c", "b", "update", 20, 10),
    ("t1", "d", "a", "audit", 15, 30),
    ("t1", "e", "a", "insert", 70, 20),
)


def test_spans_are_inside_of_their_parents_in_order_of_time() -> None:
    found = read(SHOP, service="shop", clock_error_ns=7)
    assert found is not None
    assert (found.run, found.started_ns, found.outside) == (1, 1, 0)
    root = found.root
    assert (root.name, root.service, root.duration_ns, root.self_ns) == ("order", "shop", 100, 30)
    assert [child.name for child in root.children] == ["pay", "audit", "insert"]
    (update,) = root.children[0].children
    assert (update.name, update.begin_ns, update.clock_error_ns) == ("update", 20, 7)
    spans = shown(root)
    assert sum(span.critical_ns for span in spans) == 100
    assert [span.name for span in spans if not span.critical_ns] == ["audit"]


def test_a_service_whose_clock_is_ahead_is_inside_of_its_call() -> None:
    ms = 1_000_000
    rows = [
        row
        for number in range(30)
        for row in (
            (f"t{number}", "a", None, "order", 100 * number * ms, 10 * ms),
            (f"t{number}", "b", "a", "shop: call (client)", (100 * number + 1) * ms, 6 * ms),
            (f"t{number}", "c", "b", "bank: pay (server)", (100 * number + 51) * ms, 6 * ms),
        )
    ]
    found = read(rows, 10 * ms)
    assert found is not None
    _, call, pay = shown(found.root)
    assert call.begin_ns == pay.begin_ns == ms
    assert pay.critical_ns == 6 * ms


def test_the_request_with_the_nearest_duration_is_shown() -> None:
    rows = [(f"t{took}", "a", None, "order", 1000 * took, took) for took in (10, 50, 90)]
    for wanted, took in ((0, 10), (52, 50), (1e9, 90)):
        found = read(rows, wanted)
        assert found is not None
        assert found.root.duration_ns == took
    found = read(rows, 0, first=1)
    assert found is not None
    assert found.root.duration_ns == 50, "the first request is of the warm-up"


def test_a_complete_trace_is_preferred() -> None:
    broken: Sequence[Row] = (
        ("t2", "a", None, "order", 500, 100),
        ("t2", "b", "lost", "pay", 510, 40),
    )
    found = read([*SHOP[:1], *broken], most=1)
    assert found is not None
    assert (found.started_ns, found.outside) == (1, 0)
    alone = read(broken)
    assert alone is not None
    assert (len(shown(alone.root)), alone.outside) == (1, 1)


def test_the_longest_spans_are_shown_and_the_others_counted() -> None:
    wide = [("t1", f"s{n}", "a", f"name {n}", n % 10, 20 + n % 50) for n in range(10_000)]
    found = read([SHOP[0], *wide], most=50)
    assert found is not None
    assert len(shown(found.root)) == 50
    assert found.root.hidden == 10_000 - 49
    assert {child.duration_ns for child in found.root.children} == {69}


def test_deep_spans_are_counted_by_the_last_that_is_shown() -> None:
    deep = [("t1", str(n), str(n - 1), "call", 0, 100) for n in range(1, 10_000)]
    found = read([("t1", "0", None, "order", 0, 100), *deep], most=200)
    assert found is not None
    spans = shown(found.root)
    assert len(spans) == DEEPEST
    assert [span.hidden for span in spans] == [0] * (DEEPEST - 1) + [10_000 - DEEPEST]


def test_cycles_equal_ids_and_spans_that_are_their_own_parents() -> None:
    strange: Sequence[Row] = (
        ("t1", "x", "y", "cycle", 0, 10),
        ("t1", "y", "x", "cycle", 0, 10),
        ("t1", "b", "a", "pay", 60, 5),
        ("t1", "z", "z", "own", 0, 10),
    )
    found = read([*SHOP, *strange, ("t2", "a", "a", "order", 2_000, 105)], 104)
    assert found is not None
    assert found.root.duration_ns == 105
    found = read([*SHOP, *strange])
    assert found is not None
    assert found.outside == 3
    assert [span.name for span in shown(found.root)].count("pay") == 2


def test_a_span_with_the_name_of_the_root_is_no_request() -> None:
    found = read([*SHOP, ("t1", "f", "a", "order", 10, 5)], 5)
    assert found is not None
    assert found.root.duration_ns == 100


def test_without_a_root_or_ids_there_is_no_trace() -> None:
    assert read([("t1", "a", "b", "order", 0, 100), ("t1", "b", None, "front", 0, 200)]) is None
    assert read([("t1", "a", None, "other", 0, 100)]) is None
    samples = connect().create_table(fresh_name("spans"), pa.table({"run": [1], "span": ["order"]}))
    assert examples(samples, 1, [Wanted("order", 0, 100)], 10) == [None]
