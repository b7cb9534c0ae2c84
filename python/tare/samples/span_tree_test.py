# SPDX-License-Identifier: Apache-2.0
"""Which span lies around which."""

import ibis

from tare.samples.engine import connect
from tare.samples.span_tree import parents

Row = tuple[str, str, str | None, str | None]


def tree(*rows: Row) -> dict[str, str]:
    names = ("trace_id", "span_id", "parent_id", "span")
    schema = ibis.schema(dict.fromkeys(names, "string"))
    table = ibis.memtable([dict(zip(names, row, strict=True)) for row in rows], schema=schema)
    return parents([connect().create_table("spans", table)])


def test_by_name_from_the_ids_of_each_trace() -> None:
    one: list[Row] = [("t", "1", None, "GET /"), ("t", "2", "1", "pay"), ("t", "3", "2", "SQL")]
    # The same ids in another trace are other spans.
    other: list[Row] = [("u", "1", None, "cart"), ("u", "2", "1", "stock")]
    assert tree(*one, *other) == {"pay": "GET /", "SQL": "pay", "stock": "cart"}


def test_the_usual_caller_is_the_one_around() -> None:
    rows: list[Row] = [("t", "1", None, "a"), ("t", "2", None, "b")]
    calls: list[Row] = [("t", f"1{n}", "1" if n else "2", "SQL") for n in range(3)]
    assert tree(*rows, *calls) == {"SQL": "a"}


def test_circles_are_opened() -> None:
    calls: list[Row] = [("t", f"{n}", "1", "b") for n in (2, 3)]
    assert tree(("t", "1", None, "a"), *calls, ("t", "4", "2", "a")) == {"b": "a"}
    assert tree(("t", "1", None, "a"), ("t", "2", "1", "a")) == {}


def test_a_caller_that_is_not_there_is_none() -> None:
    assert tree(("t", "2", "1", "pay")) == {}


def test_what_has_no_name_is_the_whole_request() -> None:
    assert tree(("t", "1", None, None), ("t", "2", "1", "pay")) == {"pay": "request"}


def test_samples_without_ids_have_no_tree() -> None:
    assert parents([ibis.memtable({"span": ["a"]})]) == {}
