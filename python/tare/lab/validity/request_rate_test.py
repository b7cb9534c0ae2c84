# SPDX-License-Identifier: Apache-2.0
"""The rate of a run from its slices."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from tare.lab.validity.request_rate import invalid_reason

MS = 1_000_000


def told(sent: Sequence[int], asked: float, slice_ns: int | None = 5 * MS) -> str | None:
    """Of slices with so many requests each, of 5 ms, read over 7 ms."""
    slices = [2 * place for place in range(len(sent))]
    samples = pa.table(
        {"slice": [at for at, of in zip(slices, sent, strict=True) for _ in range(of)]}
    )
    rows = [
        {"slice": at, "metric": metric, "duration_ns": 7 * MS}
        for at in slices
        for metric in ("steal", "run_delay")
    ]
    return invalid_reason(
        asked, samples, pa.Table.from_pylist([*rows, {"metric": "oom_kills"}]), slice_ns
    )


def test_a_rate_holds_within_the_slices() -> None:
    assert told([10] * 200, 2_000) is None
    assert told([10] * 200, 2_030) is None
    assert told([7] * 200, 1_000, None) is None  # one service by itself: all of the time
    assert told([0, 1] * 100, 100) is None


@pytest.mark.parametrize(("sent", "asked"), [([10] * 200, 2_500), ([11] * 200, 2_000)])
def test_another_rate_is_told(sent: list[int], asked: float) -> None:
    found = told(sent, asked)
    assert found is not None
    assert f"{200 * sent[0]:,} requests/s were sent instead of {asked:,.0f}" in found


def test_a_machine_that_stood_still_for_some_slices_is_no_other_rate() -> None:
    assert told([10] * 120 + [0] * 20 + [10] * 60, 2_000) is None


def test_few_requests_may_lie_on_either_side_of_a_border() -> None:
    assert told([1, 0, 1, 1, 0, 1, 0, 1] * 5, 125) is None
