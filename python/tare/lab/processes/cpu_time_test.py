# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tare.lab.processes.cpu_time import Spent, of_all, per_request, spent, watched_share
from tare.lab.processes.processes import Process, Processes

BUSY = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"


def start(held: Processes, folder: Path, name: str, *command: str) -> Process:
    cpus = sorted(os.sched_getaffinity(0))
    return held.start(name, command, directory=folder, log=folder / "log", cpus=cpus)


def wait_until_done(held: Processes, folder: Path) -> None:
    while "done" not in (folder / "log").read_text():
        held.wait(0.02)


def test_the_cpu_time_of_a_service_has_its_proxies_in_it(tmp_path: Path) -> None:
    with Processes(tmp_path / "supervisor.log") as held:
        service = start(held, tmp_path, "service", "sleep", "60")
        proxy = start(held, tmp_path, "p", "sh", "-c", f"{BUSY}; echo done; exec sleep 60")
        wait_until_done(held, tmp_path)

        def used(members: list[Process]) -> int:
            return spent([*map(held.family, members)]).all_ns

        assert used([service, proxy]) >= used([proxy]) > 0


@pytest.mark.parametrize(
    ("busy", "whole"), [(f"{BUSY}; {BUSY}", True), (f"{BUSY}; ({BUSY})", False)]
)
def test_children_that_come_and_go_are_noticed(busy: str, whole: bool, tmp_path: Path) -> None:
    with Processes(tmp_path / "supervisor.log") as held:
        service = start(held, tmp_path, "s", "sh", "-c", f"{busy}; echo done; exec sleep 60")
        wait_until_done(held, tmp_path)
        after = spent([held.family(service)])
        assert after.pids == [service.pid]
        share = watched_share(Spent([service.pid], 0, 0), after, held.in_ticks)
        assert (share is not None) is whole


def test_processes_that_came_or_went_are_noticed_by_their_ids() -> None:
    assert watched_share(Spent([1, 2], 0, 0), Spent([1, 2], 100, 100), in_ticks=False) == 1
    assert watched_share(Spent([1, 2], 0, 0), Spent([1, 3], 100, 100), in_ticks=False) is None
    assert watched_share(Spent([1], 0, 0), Spent([1], 100, 130), in_ticks=False) is None
    assert watched_share(Spent([1], 0, 0), Spent([1], 100, 130), in_ticks=True) == 1


def test_cpu_time_of_threads_that_ended_is_the_services() -> None:
    share = watched_share(Spent([1], 0, 0), Spent([1], 90, 100), in_ticks=False)
    assert share == 0.9
    cpu = {"service_ns_per_request": 900.0, "generator_ns_per_request": 50.0}
    assert of_all(cpu, share) == {
        "service_ns_per_request": 1000.0,
        "generator_ns_per_request": 50.0,
    }
    assert of_all(cpu, None) == {"generator_ns_per_request": 50.0}


def test_cpu_time_a_request_comes_from_the_slices() -> None:
    rows = [
        ("service", "cpu_time", 300.0),
        ("service", "cpu_time", 500.0),
        ("generator", "cpu_time", 100.0),
        ("generator", "requests", 3.0),
        ("generator", "requests", 5.0),
        ("machine", "steal", 9.0),
    ]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    table = pa.table(columns, names=["subject", "metric", "value"])
    expected = {"service_ns_per_request": 100.0, "generator_ns_per_request": 12.5}
    assert per_request(table) == expected
    assert per_request(table.slice(0, 3)) == {}
