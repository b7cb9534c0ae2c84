# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.lab.run.new_manifest import schedule
from tare.lab.run.progress import START_S, group_seconds, plan_seconds
from tare.lab.run.schedule import groups
from tare.plan import Plan, parse

PLAN = """\
name = "try"
budget = "3%"
blocks = 4
service = { command = "serve {port}" }
load = { warmup = "1s", duration = "3s" }
conditions = [{ name = "plain" }, { name = "layered" }]
"""


def planned(keys: str = "", done: range = range(0)) -> float:
    plan = read(keys)
    return plan_seconds(plan, groups(schedule(plan, 1), plan.has_whole_blocks, done))


def read(keys: str = "") -> Plan:
    return parse(f"{keys}\n{PLAN}", "try.toml", Path("/"))


def test_the_time_counts_the_control() -> None:
    assert planned() == pytest.approx(4 * (START_S + 3 * (START_S + 4)))
    assert planned("control = false") == pytest.approx(4 * (START_S + 2 * (START_S + 4)))
    assert planned('design = "blocks"') == pytest.approx(12 * (START_S + START_S + 4))


def test_what_is_done_takes_no_time() -> None:
    assert planned(done=range(1, 7)) == pytest.approx(planned() / 2)
    assert planned('design = "blocks"', range(1, 12)) == pytest.approx(group_seconds(read(), 1))
