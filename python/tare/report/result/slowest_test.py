# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pyarrow as pa

from tare.report.result.slowest import REQUESTS, Slow, slowest
from tare.samples.sql.engine import connect
from tare.samples.sql.table import Table, fresh_name

PLACES = {1: ("host", "old"), 2: ("host", "new"), 3: ("host", "old")}


def table(columns: dict[str, list[Any]]) -> Table:
    return connect().create_table(fresh_name("samples"), pa.table(columns))


def requests(number: int = 30) -> dict[str, list[Any]]:
    """Of four runs; each request waited 5 ns to be sent, and the later requests took longer."""
    rows = [(run, 1_000 * n, 10 * n + run) for run in (1, 2, 3, 4) for n in range(number)]
    return {
        "run": [run for run, _, _ in rows],
        "start_ns": [start for _, start, _ in rows],
        "intended_ns": [start - 5 for _, start, _ in rows],
        "latency_ns": [took + 5 for _, _, took in rows],
        "duration_ns": [took for _, _, took in rows],
    }


def test_the_slowest_of_all_runs_of_a_condition_from_when_they_were_due() -> None:
    every = table(requests())
    found = slowest(every, every, PLACES)
    assert {place: len(slow) for place, slow in found.items()} == {
        ("host", "old"): REQUESTS,
        ("host", "new"): REQUESTS,
    }
    old = found["host", "old"]
    assert old[:2] == [Slow(3, 28_995, 29_293), Slow(1, 28_995, 29_291)]
    assert [request.latency_ns for request in old] == sorted(
        (request.latency_ns for request in old), reverse=True
    )
    assert {request.run for request in found["host", "new"]} == {2}


def test_without_an_intended_time_a_request_is_due_when_it_is_sent() -> None:
    columns = requests(1)
    del columns["intended_ns"]
    every = table(columns)
    assert slowest(every, every, PLACES)["host", "new"] == [Slow(2, 0, 7)]


def test_without_start_times_there_are_none() -> None:
    columns = requests(1)
    every = table(columns)
    del columns["start_ns"]
    assert slowest(every, table(columns), PLACES) == {}
    impossible = table(columns | {"start_ns": [-(2**63)] * len(columns["run"])})
    assert slowest(impossible, impossible, PLACES) == {}
