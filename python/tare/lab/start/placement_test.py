# SPDX-License-Identifier: Apache-2.0
import os
import re
import threading
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab.start.placement import Placement, check, out_of_the_way, place
from tare.plan import Plan, parse
from tare.plan.schema.placement import cpu_list


def parsed(keys: str, load: str) -> Plan:
    text = f"""
name = "x"
budget = 0.03
{keys}
service = {{ command = "x {{port}}" }}
load = {{ {load} }}
conditions = [{{ name = "a" }}, {{ name = "b" }}]
"""
    return parse(text, "x.toml", Path())


def placed(cpus: list[int], keys: str, load: str) -> Placement:
    return place(parsed(keys, load), cpus)


@pytest.mark.parametrize(
    ("cpus", "keys", "load", "expected"),
    [
        ([0, 1], "", "", ([1], [1])),
        ([0, 1], "", "users = 2", ([0], [1])),
        ([0, 1], "", 'mode = "open", rate = 5', ([0], [1])),
        ([0, 1], 'placement = "different-cores"', "", ([0], [1])),
        ([0, 1], 'placement = "same-core"', "users = 9", ([1], [1])),
        ([0, 1], 'placement = "free"', "", ([0, 1], [0, 1])),
        ([4, 2, 6, 8], "", "users = 9, threads = 3", ([2, 4], [6, 8])),
        ([4, 2, 6, 8], "", "users = 9", ([2, 4, 6], [8])),
        ([3], 'placement = "different-cores"', "", ([3], [3])),
        ([0, 1], 'placement = { service = "5,0-2", generator = "7" }', "", ([0, 1, 2, 5], [7])),
    ],
)
def test_placement(
    cpus: list[int], keys: str, load: str, expected: tuple[list[int], list[int]]
) -> None:
    placement = placed(cpus, keys, load)
    assert (placement.service, placement.generator) == expected


def test_a_plan_can_name_the_cpus() -> None:
    keys = 'placement = { service = "2-3", generator = "1" }'
    why = "service on CPU 2-3, load on CPU 1 (set in the plan)"
    assert placed([0, 1], keys, "").why == why


def test_a_cpu_that_may_not_be_used_is_refused_before_anything_starts() -> None:
    allowed = os.sched_getaffinity(0)
    known = cpu_list([max(allowed)])
    check(parsed(f'placement = {{ service = "{known}", generator = "{known}" }}', ""))
    message = r'x.toml:4: placement.generator: found "8000", expected CPUs that this process may'
    with pytest.raises(InputError, match=message):
        check(parsed(f'placement = {{ service = "{known}", generator = "8000" }}', ""))
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.parametrize(
    ("value", "place", "wanted"),
    [
        ('"same"', "placement", '"same-core", "different-cores", "free", or the CPUs of both'),
        ('{ service = "1" }', "placement", '"same-core", "different-cores"'),
        ('{ service = "1", generator = 2 }', "placement.generator", 'CPU numbers such as "2-3"'),
        ('{ service = "3-2", generator = "2" }', "placement.service", "CPU numbers such as"),
        ('{ service = "9999", generator = "2" }', "placement.service", "CPU numbers such as"),
    ],
)
def test_what_is_no_placement_is_refused(value: str, place: str, wanted: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"x.toml:4: {place}: found ")) as caught:
        parsed(f"placement = {value}", "")
    assert f"expected {wanted}" in str(caught.value)


TCP = 'type = "tcp", send = "x", reply = "resp"'
FOREIGN = 'type = "command", command = "x", output = "x.csv", format = "locust"'


@pytest.mark.parametrize(
    ("keys", "load", "why"),
    [
        ("", "", "service and load on the same core (with one user"),
        ("", "users = 2", "service and load on different cores (several users)"),
        ("", TCP, "service and load on the same core (with one user"),
        (
            "",
            f"{TCP}, pipeline = 2",
            "service and load on different cores (several outstanding requests)",
        ),
        (
            "",
            'mode = "open", rate = 5',
            "service and load on different cores (requests are sent at a rate)",
        ),
        (
            "",
            'mode = "constant", rate = 5',
            "service and load on different cores (requests are sent at a rate)",
        ),
        ("", FOREIGN, "service and load on different cores (the load generator is not Tare's)"),
        (
            'placement = "different-cores"',
            FOREIGN,
            "service and load on different cores (set in the plan)",
        ),
    ],
)
def test_every_placement_has_its_own_reason(keys: str, load: str, why: str) -> None:
    assert placed([0, 1], keys, load).why.startswith(why)


def test_the_lab_itself_keeps_off_the_measured_cpus() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("there is one CPU")
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with out_of_the_way(Placement(allowed[-1:], allowed[-1:], "")):
            for thread in (0, other.native_id or 0):
                assert sorted(os.sched_getaffinity(thread)) == allowed[:-1]
        with out_of_the_way(Placement(allowed, allowed, "")):
            assert sorted(os.sched_getaffinity(0)) == allowed
        assert sorted(os.sched_getaffinity(other.native_id or 0)) == allowed
    finally:
        over.set()
        other.join()
