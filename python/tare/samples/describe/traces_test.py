# SPDX-License-Identifier: Apache-2.0
"""What traces say of a run, from rows as files have them."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from tare.samples.describe import span_arrays
from tare.samples.describe import traces as module
from tare.samples.describe.traces import OTHER, Traces, traces
from tare.samples.model import Part
from tare.samples.sql.engine import connect
from tare.samples.sql.table import fresh_name

Row = tuple[str, str, str | None, str, int, int]
"""Trace, own id, id of the parent, name, start and duration."""
REQUEST: Sequence[Row] = (
    ("t1", "a", None, "order", 0, 100),
    ("t1", "b", "a", "pay", 10, 50),
    ("t1", "c", "b", "update", 20, 10),
    ("t1", "d", "b", "update", 40, 10),
    ("t1", "e", "a", "insert", 70, 20),
)
PARTS = {
    "order": Part(30, 30, 1),
    "pay": Part(30, 30, 1),
    "update": Part(20, 20, 2),
    "insert": Part(20, 20, 1),
}


def read(rows: Sequence[Row], failed: Sequence[str] = (), first: int = 0) -> Traces:
    """The traces of two runs: a run of `rows`, and a run of another kind of request."""
    table = [
        {
            "run": 1, "trace_id": trace, "span_id": own, "parent_id": parent, "span": name,
            "start_ns": start, "duration_ns": took, "ok": own not in failed, "place": place,
        }
        for place, (trace, own, parent, name, start, took) in enumerate(rows)
    ]  # fmt: skip
    other = [row | {"run": 2, "span": "x", "trace_id": f"other {n}"} for n, row in enumerate(table)]
    samples = connect().create_table(fresh_name("spans"), pa.Table.from_pylist([*table, *other]))
    cuts = {(1, name): 0 for _, _, _, name, *_ in rows} | {(1, "order"): first, (2, "x"): 0}
    return traces(samples, cuts)


def called(found: Traces, structure: int) -> set[tuple[str | None, str]]:
    """The names of each call of a structure and of its caller."""
    calls = [found.calls[number] for number in found.structures[structure]]
    return {(found.calls[call.caller].span if call.caller else None, call.span) for call in calls}


def test_a_request() -> None:
    found = read(REQUEST)
    assert [*found.of] == [(1, "order")], "requests of one span have no parts"
    traced = found.of[1, "order"]
    assert (traced.requests, traced.mean_ns, traced.broken) == (1, 100, 0)
    assert traced.parts == PARTS
    assert sum(part.critical_ns for part in traced.parts.values()) == traced.mean_ns
    (structure,) = traced.structures
    assert traced.structures == {structure: 1}
    assert called(found, structure) == {
        (None, "order"),
        ("order", "pay"),
        ("pay", "update"),
        ("order", "insert"),
    }


def of_trace(trace: str, rows: Sequence[Row] = REQUEST, later: int = 0) -> list[Row]:
    return [(trace, own, up, name, start + later, took) for _, own, up, name, start, took in rows]


def test_means_and_structures_of_several_requests() -> None:
    without = of_trace("t2", REQUEST[:2])
    found = read([*REQUEST, *without])
    traced = found.of[1, "order"]
    assert traced.requests == 2
    assert traced.parts["update"].calls == 1
    assert traced.parts["insert"] == Part(10, 10, 0.5)
    shapes = {frozenset(called(found, key)): count for key, count in traced.structures.items()}
    assert shapes[frozenset({(None, "order"), ("order", "pay")})] == 1
    assert len(shapes) == 2


def test_failed_requests_and_the_warm_up_do_not_count() -> None:
    rows = [*REQUEST, *of_trace("t2", [("", "f", None, "order", 0, 10)])]
    assert read(rows, failed=["f"]).of[1, "order"].parts == PARTS
    warm = [*of_trace("t0", [("", "f", None, "order", 0, 10)]), *of_trace("t1", REQUEST)]
    assert read(warm, first=1).of[1, "order"].parts == PARTS


def test_a_trace_that_lacks_a_span_does_not_count() -> None:
    lost = [row for row in of_trace("t2") if row[1] != "b"]
    traced = read([*REQUEST, *lost]).of[1, "order"]
    assert traced.parts == PARTS
    assert traced.broken == 0.5


def test_a_caller_that_nobody_recorded_breaks_no_trace() -> None:
    called = [(row[0], row[1], row[2] or "gone", *row[3:]) for row in REQUEST]
    assert read(called).of[1, "order"].parts == PARTS
    again = [
        (trace, f"{own}2", up if up == "gone" else f"{up}2", name, start, took)
        for trace, own, up, name, start, took in called
    ]
    assert read([*called, *again]).of[1, "order"].requests == 2


def test_a_trace_without_its_root_is_no_other_kind_of_request() -> None:
    """Its spans have a parent that was not recorded, and in other traces it was."""
    lost = of_trace("t3", REQUEST[1:])
    found = read([*REQUEST, *of_trace("t2"), *lost])
    assert [*found.of] == [(1, "order")]
    assert found.of[1, "order"].requests == 2
    (line,) = found.lines[1]
    assert line.startswith("1 of 3 traces lack their root span: they begin with spans such as 'pay")
    direct = [row if row[1] != "b" else (*row[:2], None, *row[3:]) for row in lost[:3]]
    found = read([*REQUEST, *of_trace("t2"), *direct])
    assert sorted(found.of) == [(1, "order"), (1, "pay")], "a caller without a trace is no loss"


@pytest.mark.parametrize(
    "odd",
    [
        [("t2", "g", "h", "order", 0, 5), ("t2", "h", "g", "order", 0, 5)],
        [("t2", "g", "g", "order", 0, 5)],
        [("t2", "g", None, "order", 0, 5), ("t2", "g", None, "order", 1, 5)],
    ],
    ids=["cycle", "its own parent", "one id twice"],
)
def test_odd_ids_break_nothing(odd: list[Row]) -> None:
    traced = read([*REQUEST, *odd]).of[1, "order"]
    assert traced.parts["pay"].calls <= 1
    assert sum(part.critical_ns for part in traced.parts.values()) == pytest.approx(traced.mean_ns)


def test_of_many_spans_some_traces_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for n in range(200) for row in of_trace(f"t{n}", REQUEST, 1_000 * n)]
    monkeypatch.setattr(span_arrays, "SPANS", 500)
    traced = read(rows).of[1, "order"]
    assert 40 < traced.requests < 200
    assert traced.parts == PARTS


def test_deep_traces_take_no_more_time_than_wide_ones() -> None:
    """A walk from each span to its root would take 50 million steps."""
    deep = 10_000
    chain: list[Row] = [
        ("t1", str(at), str(at - 1) if at else None, f"s{at % 7}", at, 3 * deep - at)
        for at in range(deep)
    ]
    found = read(chain)
    traced = found.of[1, "s0"]
    assert sum(part.calls for part in traced.parts.values()) == deep
    (structure,) = traced.structures
    assert len(found.structures[structure]) == deep


def test_rare_structures_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STRUCTURES", 1)
    found = read([*REQUEST, *of_trace("t2"), *of_trace("t3", REQUEST[:2])]).of[1, "order"]
    assert found.structures[OTHER] == 1
    assert sorted(found.structures.values()) == [1, 2]


def test_samples_without_ids() -> None:
    table = pa.table({"run": [1], "span": ["a"], "start_ns": [0], "duration_ns": [1], "ok": [True]})
    samples = connect().create_table(fresh_name("spans"), table)
    assert traces(samples, {(1, "a"): 0}) == Traces()
