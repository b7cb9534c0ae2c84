# SPDX-License-Identifier: Apache-2.0
"""How the load and the recording of runs went, against what was put into the rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tare.samples.describe.load_stats import load_stats
from tare.samples.model import LoadStats
from tare.samples.sql.engine import connect
from tare.samples.sql.group_numbers import Group

MS = 1_000_000
T = 1_700_000_000_000 * MS


def of(**columns: Any) -> dict[Group, LoadStats]:
    rows = len(columns["duration_ns"])
    defaults: dict[str, Any] = {"run": [1] * rows, "span": ["request"] * rows}
    table = pa.table({**defaults, **columns})
    groups = {*zip(table["run"].to_pylist(), table["span"].to_pylist(), strict=True)}
    return load_stats(connect().create_table("samples", table), groups)


def sent(due: NDArray[np.int64], late: NDArray[np.int64] | int, **more: Any) -> LoadStats:
    """Requests of 1 ms that were due and late by so many ns."""
    took = np.full(due.size, MS)
    found = of(intended_ns=T + due, start_ns=T + due + late, duration_ns=took, **more)
    return found.get((1, "request"), LoadStats())


def test_a_load_that_is_sent_as_intended() -> None:
    due = np.arange(2_000) * MS
    found = sent(due, np.random.default_rng(1).integers(0, 50_000, due.size))
    assert found.behind == pytest.approx(0, abs=0.001)
    assert found.lag == pytest.approx(0.025, abs=0.002)
    assert found.arrivals is None


def test_a_load_that_falls_behind() -> None:
    due = np.arange(2_000) * MS
    found = sent(due, due // 20)  # each interval takes 5 % longer
    assert found.behind == pytest.approx(1 - 1 / 1.05, abs=0.0001)
    assert found.lag > 0.9


def test_a_machine_that_stood_still_once_is_no_load_that_was_too_much() -> None:
    due = np.arange(2_000) * MS
    stood = np.where((due > 700 * MS) & (due < 900 * MS), 900 * MS - due, 0)
    assert sent(due, stood).behind == 0
    # Nor is it at the end, where nothing is left to catch up.
    assert sent(due, np.where(due > 1_950 * MS, 200 * MS, 0)).behind == 0


def test_a_rate_holds_within_slices() -> None:
    slices = np.repeat(np.arange(400), 5)
    within = np.tile(np.arange(5), 400) * MS
    due = slices * 15 * MS + within
    assert sent(due, 0, slice=slices).behind == 0
    # Each slice ends late and begins in time, so the whole takes no longer.
    assert sent(due, within // 10, slice=slices).behind == pytest.approx(1 - 1 / 1.1)


def test_a_few_requests_have_no_rate() -> None:
    due = np.arange(50) * MS
    assert sent(due, due) == LoadStats()


def test_a_closed_loop_intends_what_it_does() -> None:
    due = np.arange(500) * MS
    assert sent(due, 0) == LoadStats()


def test_nothing_is_said_of_what_is_not_recorded() -> None:
    assert of(duration_ns=[1, 2, 3]) == {}


def test_bounds_of_clocks_are_averaged_by_span() -> None:
    found = of(
        duration_ns=[1, 1, 1, 1],
        span=["a", "a", "b", "b"],
        clock_error_ns=np.array([100, 300, 5, 5]),
    )
    assert {span: stats.clock_error_ns for (_, span), stats in found.items()} == {"a": 200, "b": 5}


def flights(starts: NDArray[np.int64], took: NDArray[np.int64]) -> Iterator[int]:
    """How many others are under way when each request starts, counted one by one."""
    ends = starts + took
    for at in starts:
        yield int(((starts <= at) & (ends > at)).sum()) - 1


def test_others_under_way_against_counting_them() -> None:
    generator = np.random.default_rng(5)
    starts = np.sort(generator.choice(10_000, 400, replace=False))
    took = generator.integers(1, 200, 400)
    spans = np.where(generator.random(400) < 0.4, "pay", "cart")
    found = of(start_ns=T + starts, duration_ns=took, span=spans)
    for span in ("pay", "cart"):
        mine = spans == span
        stats = found[1, span]
        assert stats.others == pytest.approx(np.mean([*flights(starts[mine], took[mine])]))
        rate = (mine.sum() - 1) / np.ptp(starts[mine]) * 1e9
        assert stats.arrivals == pytest.approx(rate)


def test_one_after_the_other_meets_none() -> None:
    starts = np.repeat(np.arange(100) * 10, 2)
    found = of(start_ns=T + starts, duration_ns=np.full(200, 10), span=["a", "b"] * 100)
    assert {stats.others for stats in found.values()} == {0.0}


def test_of_very_many_the_middle_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    # Twice as many under way in the last tenth as in the middle.
    starts = np.arange(20_000) * MS
    took = np.where(starts < 18_000 * MS, 5, 10) * MS
    columns = {"span": ["a", "b"] * 10_000, "start_ns": T + starts, "duration_ns": took}
    whole = of(**columns)[1, "a"]
    monkeypatch.setattr("tare.samples.describe.load_stats.MOST", 1_000)
    middle = of(**columns)[1, "a"]
    assert whole.others == pytest.approx(2.2, abs=0.01)
    assert middle.others == pytest.approx(2, abs=0.01)
    assert middle.arrivals == pytest.approx(500, rel=0.001)


Row = tuple[str, str, str | None, str]


def lost(*rows: Row) -> float:
    """The share of orphans among spans of a trace each (trace, span, parent, name)."""
    names = ("trace_id", "span_id", "parent_id", "span")
    columns: dict[str, Sequence[Any]] = dict(zip(names, zip(*rows, strict=True), strict=True))
    found = of(duration_ns=[1] * len(rows), **columns)
    (share,) = {stats.orphans for stats in found.values()}
    return share


WHOLE: list[Row] = [
    row
    for trace in "abcdefghi"
    for row in ((trace, "1", None, "GET"), (trace, "2", "1", "pay"), (trace, "3", "2", "SQL"))
]


def test_whole_traces_have_no_orphans() -> None:
    assert lost(*WHOLE) == 0


def test_a_span_that_lost_the_one_around_it() -> None:
    assert lost(*WHOLE, ("z", "1", None, "GET"), ("z", "3", "2", "SQL")) == 1 / 29
    # Without its root a trace falls into parts.
    assert lost(*WHOLE, ("z", "2", "1", "pay"), ("z", "4", "9", "pay")) == 2 / 29


def test_a_caller_whom_nobody_records_leaves_no_orphans() -> None:
    called: list[Row] = [(trace, "1", "0", name) if name == "GET" else (trace, span, parent, name)
                         for trace, span, parent, name in WHOLE]  # fmt: skip
    assert lost(*called) == 0
    # A page that calls several times is a caller, too.
    assert lost(*called, *((trace, "4", "00", "GET") for trace in "abc")) == 0
    # So is who calls an inner service directly, in traces of their own.
    assert lost(*WHOLE, ("x", "2", "0", "pay"), ("x", "3", "2", "SQL")) == 0


def test_ids_of_other_runs_are_other_spans() -> None:
    rows = [*WHOLE, ("z", "1", None, "GET"), ("z", "3", "2", "SQL"), ("z", "2", "1", "pay")]
    names = ("trace_id", "span_id", "parent_id", "span")
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
    runs = [1] * (len(rows) - 1) + [2]  # the second run has "pay" of the trace alone
    found = of(**columns, run=runs, duration_ns=[1] * len(rows))
    assert found[1, "SQL"].orphans == 1 / 29
    assert found[2, "pay"].orphans == 0  # the only top of its trace
