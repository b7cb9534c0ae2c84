# SPDX-License-Identifier: Apache-2.0
"""Other programs and virtual machines; a real program is in tests/lab/test_recommendations.py."""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.other_programs import CpuTimes, Others, Process, between
from tare.lab.recommendations.tenancy import judge

Make = Callable[..., RunObservations]
NOTHING = Others(cpus=0.02, programs=(), stolen=0.001, experiments=0)


def test_a_machine_that_runs_nothing_else(observations: Make) -> None:
    result = judge(observations(others=NOTHING, machine={"pressure_cpu": 0.5}))
    assert result is not None
    assert result.status == "kept"


@pytest.mark.parametrize(
    ("others", "machine", "why"),
    [
        (replace(NOTHING, cpus=0.6, programs=(("dd", 7, 0.6),)), {}, "dd (PID 7) 0.60"),
        (replace(NOTHING, stolen=0.3), {}, "took 30.0 % of the CPU time"),
        (replace(NOTHING, experiments=1), {}, "other runs of tare at the same time: 1"),
        (NOTHING, {"pressure_io": 40.0}, "pressure before the first run: io 40 %"),
    ],
)
def test_what_disturbs_comes_first(
    others: Others, machine: dict[str, float], why: str, observations: Make
) -> None:
    result = judge(observations(others=others, machine=machine))
    assert result is not None
    assert result.status == "broken"
    assert why in result.evidence[0]


def times(at_s: float, **processes: tuple[int, int, int, int]) -> CpuTimes:
    """A reading of processes: PID, parent, ticks, ticks of ended children."""
    found = {(pid, 1): Process(name, *rest) for name, (pid, *rest) in processes.items()}
    return CpuTimes(at_s, found, int(at_s * 200), 0)


TICKS = 10 * os.sysconf("SC_CLK_TCK")


def test_the_time_of_a_process_that_ends_is_that_of_its_parent() -> None:
    before = times(0, make=(10, 1, 5, 0), cc=(11, 10, 900, 0), tare=(20, 1, 0, 0))
    after = times(10, make=(10, 1, 6, 939), tare=(20, 1, 800, 0), kworker=(30, 2, 700, 0))
    found = between(before, after, {20}, {20})
    assert found.cpus == pytest.approx(40 / TICKS)
    assert found.programs == (("make", 10, 1 / TICKS),)


def test_time_that_no_parent_waited_for_hides_no_living_process() -> None:
    before = times(0, lost=(10, 1, 900, 0), busy=(11, 1, 0, 0))
    found = between(before, times(10, busy=(11, 1, 50, 0)), {20}, {20})
    assert found.cpus == pytest.approx(50 / TICKS)
