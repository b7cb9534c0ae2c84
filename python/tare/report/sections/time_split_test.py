# SPDX-License-Identifier: Apache-2.0
"""What a block cost, from when its runs began and ended."""

from tare.report.sections.time_split import SECOND, Time, _time
from tare.samples.model import Run


def run(block: int, begin: float, end: float) -> Run:
    start, stop = int(begin * SECOND), int(end * SECOND)
    return Run("", "plain", block, block, "request", 1, 0, 1, start, {}, ended_ns=stop)


def test_runs_side_by_side_are_measured_once() -> None:
    blocks = [run(n, 10 * n + side, 10 * n + 3 + side) for n in range(4) for side in (0, 0.5)]
    assert _time(blocks) == Time(measured=3.5, besides=6.5)


def test_a_pause_before_it_was_resumed_is_no_cost_of_a_block() -> None:
    blocks = [run(n, 10 * n + 3600 * (n > 2), 10 * n + 3600 * (n > 2) + 3) for n in range(8)]
    assert _time(blocks) == Time(measured=3, besides=7)


def test_without_two_blocks_or_any_time_nothing_is_known() -> None:
    assert _time([]) is _time([run(1, 0, 3)]) is _time([run(1, 0, 0), run(2, 9, 9)]) is None
