# SPDX-License-Identifier: Apache-2.0
"""Samples of foreign generators, in which failed requests may lack times."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tare.lab.load.generators import _without_first
from tare.lab.result.measured import Measured


def table(start: list[int | None], duration: list[int | None]) -> pa.Table:
    return pa.table(
        {
            "start_ns": pa.array(start, pa.int64()),
            "duration_ns": pa.array(duration, pa.int64()),
        }
    )


@pytest.mark.parametrize(
    ("samples", "extent"),
    [
        (table([5, 7, None], [10, 1, None]), (5, 15)),
        (table([5, 7], [None, None]), (5, None)),
        (table([None], [None]), (None, None)),
        (table([], []), (None, None)),
        (pa.table({"duration_ns": [1]}), (None, None)),
    ],
)
def test_failed_requests_may_have_no_times(samples: pa.Table, extent: tuple[Any, Any]) -> None:
    assert Measured(samples, None, 0, 0, {}, {}).extent() == extent


def test_what_failed_without_a_start_is_in_no_warm_up() -> None:
    load: Any = SimpleNamespace(warmup=10, output="out.csv")
    samples = table([100, 109, 110, None], [1, 1, 1, None])
    assert _without_first(samples, load)["start_ns"].to_pylist() == [110, None]
    assert _without_first(table([None], [None]), load).num_rows == 1


def test_what_follows_the_warm_up_is_numbered_from_0() -> None:
    load: Any = SimpleNamespace(warmup=10, output="out.csv")
    samples = table([100, 109, 110, 120], [1] * 4).append_column("seq", pa.array([0, 1, 2, 3]))
    assert _without_first(samples, load)["seq"].to_pylist() == [0, 1]
