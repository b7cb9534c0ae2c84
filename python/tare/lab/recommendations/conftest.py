# SPDX-License-Identifier: Apache-2.0
"""Plans and readings for the checks of recommendations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tare.lab.recommendations.observations import RunObservations
from tare.plan import Plan, parse

PLAN = """\
{top}
name = "checked"
budget = "5%"
[service]
command = "serve {{port}}"
[[conditions]]
name = "plain"
layers = [{plain}]
[[conditions]]
name = "other"
layers = [{other}]
[recommendations]
{stated}
"""


def make_plan(top: str = "", *, plain: str = "", other: str = "", stated: str = "") -> Plan:
    return parse(PLAN.format(top=top, plain=plain, other=other, stated=stated), "plan.toml", Path())


@pytest.fixture
def plan() -> Callable[..., Plan]:
    """Makes a plan of two conditions, with keys before its tables, layers, and statements."""
    return make_plan


@pytest.fixture
def observations() -> Callable[..., RunObservations]:
    """Makes the observations of a run of the second condition, for a plan with some keys."""

    def make(other: str = "", plain: str = "", stated: str = "", **read: Any) -> RunObservations:
        plan = make_plan(plain=plain, other=other, stated=stated)
        return RunObservations(plan=plan, condition=plan.conditions[1], **read)

    return make
