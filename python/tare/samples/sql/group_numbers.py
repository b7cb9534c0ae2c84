# SPDX-License-Identifier: Apache-2.0
"""Numbers that each run and span has one of, beside the requests of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from tare.samples.sql.column import functions_of

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

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


def of_runs(samples: Table, runs: Collection[int]) -> Table:
    """The requests of these runs.

    Comparisons with the ends of stretches of run numbers take no time, since all rows of a file
    have one run. For a list of numbers DuckDB makes a hash join.
    """
    tests = [samples.run.between(first, last) for first, last in _stretches(sorted(runs))]
    if not tests:
        return samples.filter(functions_of(samples).literal(False))
    return samples.filter(reduce(or_, tests))


def _stretches(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of consecutive numbers; `numbers` ascend."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number <= found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def settled(samples: Table, first: Mapping[Group, int]) -> Table:
    """The requests of each run and span from its first on, by their `place`."""
    if not any(first.values()):
        return samples
    return samples.filter(samples.place >= of_group(samples, first))
