# SPDX-License-Identifier: Apache-2.0
"""Limits of resources; a real CPU quota is in tests/lab/test_recommendations.py."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.lab.machine.descriptors import Descriptors, most_used
from tare.lab.machine.saturation import Saturation
from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.resource_limits import judge
from tare.lab.validity.resource_limits import invalid_reasons

Make = Callable[..., RunObservations]
SECOND = 1_000_000_000
FREE = Saturation(0, 2 * SECOND, {"throttled_time": 0, "oom_kills": 0})
OPENS_ALL = """
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), 4096))
try:
    while True: os.dup(0)
except OSError:
    os.write(1, b"up\\n")
time.sleep(3600)
"""


def test_what_reaches_no_limit(observations: Make) -> None:
    some = Descriptors(7, 10, 1024)
    result = judge(observations(saturation=FREE, generator_saturation=FREE, descriptors=some))
    assert result is not None
    assert result.status == "kept"
    assert result.evidence[-1] == "the service has 10 of 1,024 descriptors"


@pytest.mark.parametrize(
    ("counters", "why"),
    [
        ({"throttled_time": SECOND}, "the load generator was throttled for 1 s of 2 s"),
        ({"oom_kills": 1}, "the kernel killed a process of the load generator"),
    ],
)
def test_limits_of_the_generator_count_too(
    counters: dict[str, int], why: str, observations: Make
) -> None:
    run = observations(saturation=FREE, generator_saturation=Saturation(0, 2 * SECOND, counters))
    (reason,) = invalid_reasons(FREE, run.generator_saturation, None)
    assert reason.startswith(why)
    result = judge(run)
    assert result is not None
    assert (result.status, result.evidence) == ("broken", (reason,))


def test_a_process_that_has_opened_all_it_may(observations: Make) -> None:
    words = [sys.executable, "-c", OPENS_ALL, "32"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            found = most_used([process.pid])
        finally:
            process.kill()
    assert found == Descriptors(process.pid, 32, 32)
    result = judge(observations(saturation=FREE, descriptors=found))
    assert result is not None
    assert result.status == "broken"
    assert "32 descriptors" in result.evidence[0]


def test_descriptors_of_processes_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/limits").write_text("Max open files            unlimited   unlimited   files\n")
    assert most_used([7, 8], tmp_path) is None
