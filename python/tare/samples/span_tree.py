# SPDX-License-Identifier: Apache-2.0
"""Which span lies around which, from the ids of traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tare.samples.model import REQUEST

if TYPE_CHECKING:
    from ibis.expr.types import Table

_IDS = {"span", "trace_id", "span_id", "parent_id"}


def parents(tables: Iterable[Table]) -> dict[str, str]:
    """The span that each is most often called from, by names; those called from outside have none.

    Samples without ids of spans say nothing. Of spans that call each other in a circle, the call
    that is seldom made is left out.
    """
    calls: Counter[tuple[str, str]] = Counter()
    for table in tables:
        if set(table.columns) >= _IDS:
            calls.update(_calls(table))
    found: dict[str, str] = {}
    for (inner, outer), _ in sorted(calls.items(), key=lambda call: (-call[1], call[0])):
        if inner not in found and inner not in _around(outer, found):
            found[inner] = outer
    return found


def _calls(table: Table) -> dict[tuple[str, str], int]:
    named = table.mutate(span=table.span.fill_null(REQUEST))
    inner = named.filter(named.parent_id.notnull()).select("trace_id", "parent_id", inner="span")
    outer = named.select("trace_id", parent_id="span_id", outer="span")
    pairs = inner.join(outer, ["trace_id", "parent_id"])
    rows = pairs.group_by("inner", "outer").aggregate(calls=pairs.count())
    return {(row["inner"], row["outer"]): row["calls"] for row in rows.to_pyarrow().to_pylist()}


def _around(span: str, found: Mapping[str, str]) -> list[str]:
    """The span, and all that lie around it."""
    names = [span]
    while names[-1] in found:
        names.append(found[names[-1]])
    return names
