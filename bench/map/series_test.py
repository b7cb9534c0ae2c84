# SPDX-License-Identifier: Apache-2.0
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.map import series
from bench.map.cells import Cell, Measured, Run, Setup
from bench.map.load import CellError, Done, Load
from bench.map.measure import cases, missing
from bench.map.network import Namespace, Network
from bench.map.peers import watching
from bench.map.series import Series

ENDS = Network(Namespace("server"), Namespace("client"))
JUDGED = Run(Cell("udp", 5_000, Load("udp", 5_000)), "bundle")
DONE = Done(rate=5_000, latency_us=10, errors=0, services={})


@pytest.fixture
def of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Series]:
    monkeypatch.setattr(series, "closed", lambda _: None)
    return lambda measure, limit_s=600: Series(Setup(ENDS, tmp_path, 1), limit_s, measure)


def test_a_failure_is_a_line_and_does_not_end_the_series(of: Callable[..., Series]) -> None:
    errors: list[Exception] = [CellError("bpftrace is not installed"), PermissionError("no right")]

    def measure(_: Setup, run: Run) -> Measured:
        if errors:
            raise errors.pop(0)
        return Measured(run, DONE)

    found = of(measure)
    for _ in range(3):
        found.measure(JUDGED, 1)
    assert len(found.results) == 1
    assert [*missing(found.failures)] == [
        "- udp, 5000, bundle: no result: bpftrace is not installed",
        "- udp, 5000, bundle: no result: no right",
    ]
    assert next(cases(found.results, found.failures)).values == [2]


def test_a_measurement_that_does_not_end_is_ended(
    of: Callable[..., Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "RUN_S", 0.05)

    def measure(*_: object) -> Measured:
        time.sleep(600)
        raise AssertionError

    found = of(measure)
    found.measure(JUDGED, 0)
    assert "not done within" in found.failures[0].reason


def test_nothing_begins_for_which_no_time_is_left(of: Callable[..., Series]) -> None:
    def measure(*_: object) -> Measured:
        raise AssertionError

    found = of(measure, 25)
    found.measure(JUDGED, 30)
    assert [failure.reason for failure in found.failures] == ["no time was left"]


def test_program_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CellError, match="ss is not installed"), watching("ss", ENDS, tmp_path):
        pass
