# SPDX-License-Identifier: Apache-2.0
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tare.stats.clock_offset import FEWEST, Offset, offsets

BOUND = st.integers(-1_000, 1_000)


def found(calls: list[tuple[int, int]]) -> list[Offset] | None:
    low, high = np.array(calls, np.int64).reshape(-1, 2).T
    return offsets(low, high)


def test_the_offset_is_what_all_calls_allow() -> None:
    assert found([(-5, 9), (2, 7), (1, 8)]) == [Offset(0, 2, 7)]
    assert Offset(0, 2, 8).middle == 5


def test_calls_that_allow_no_common_offset_have_none() -> None:
    assert found([(0, 1), (5, 6)] * (FEWEST - 1)) is None
    assert found([(3, 2)]) is None
    assert found([]) is None


def test_one_odd_call_of_many_decides_nothing() -> None:
    assert found([(1, 3)] * 20 + [(100, 110)]) == [Offset(0, 1, 3)]


def test_a_clock_that_drifts_has_an_offset_for_each_part() -> None:
    parts = found([(at, at + 100) for at in range(1_000)])
    assert parts is not None
    assert len(parts) > 1
    for offset, upto in zip(parts, [*(part.first for part in parts[1:]), 1_000], strict=True):
        fits = sum(at <= offset.middle <= at + 100 for at in range(offset.first, upto))
        assert fits >= 0.95 * (upto - offset.first)


def test_a_clock_that_was_set_has_two_offsets() -> None:
    calls = [(0, 10)] * 490 + [(100, 110)] * 510
    parts = found(calls)
    assert parts is not None
    assert {(part.low, part.high) for part in parts} == {(0, 10), (100, 110)}
    assert found([(0, 10), (100, 110)] * 500) is None


@given(st.lists(st.tuples(BOUND, BOUND), min_size=1, max_size=2 * FEWEST - 1))
def test_no_other_offset_fits_more_calls(calls: list[tuple[int, int]]) -> None:
    def fitting(offset: int) -> int:
        return sum(low <= offset <= high for low, high in calls)

    most = max(fitting(bound) for call in calls for bound in call)
    parts = found(calls)
    if parts is None:
        assert most < 0.95 * len(calls)
    else:
        (part,) = parts
        assert fitting(part.low) == fitting(part.middle) == fitting(part.high) == most
