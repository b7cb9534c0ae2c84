# SPDX-License-Identifier: Apache-2.0
"""Requests of some runs."""

from collections.abc import Collection

import ibis
import pyarrow as pa
import pytest

from tare.samples.sql.engine import connect
from tare.samples.sql.group_numbers import of_runs


@pytest.mark.parametrize("runs", [[], [3], [1, 2, 3], (9, 1, 3, 2, 7), {1: "a", 8: "b"}, [99, -1]])
def test_the_requests_of_some_runs_are_found_on_any_engine(runs: Collection[int]) -> None:
    rows = pa.table({"run": pa.array([*range(10), 3, 3, None], pa.int32())})
    expected = sorted(run for run in [*range(10), 3, 3] if run in runs)
    for table in (connect().create_table("samples", rows), ibis.memtable(rows)):
        found = of_runs(table, runs).to_pyarrow()
        assert sorted(found["run"].to_pylist()) == expected
