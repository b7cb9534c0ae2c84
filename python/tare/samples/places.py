# SPDX-License-Identifier: Apache-2.0
"""Numbers that each run and span has one of, beside the requests of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tare.samples.column import functions_of

if TYPE_CHECKING:
    from tare.samples.table import Table

Group = tuple[int, str]
"""A run and a span."""


def of_group(samples: Table, numbers: Mapping[Group, int]) -> Any:
    """The number of each request's run and span; 0 where none is given.

    Not all engines take a table from memory to join with.
    """
    sql = functions_of(samples)
    by_span: dict[str, dict[int, int]] = {}
    for (run, span), number in numbers.items():
        by_span.setdefault(span, {})[run] = number
    branches = [(samples.span == span, _of_run(samples, of)) for span, of in by_span.items()]
    return sql.cases(*branches, else_=0) if branches else sql.literal(0)


def _of_run(samples: Table, numbers: Mapping[int, int]) -> Any:
    sql = functions_of(samples)
    return sql.cases(*((samples.run == run, of) for run, of in numbers.items()), else_=0)


def settled(samples: Table, first: Mapping[Group, int]) -> Table:
    """The requests of each run and span from its first on, by their `place`."""
    if not any(first.values()):
        return samples
    return samples.filter(samples.place >= of_group(samples, first))
