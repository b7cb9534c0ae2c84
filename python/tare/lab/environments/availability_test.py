# SPDX-License-Identifier: Apache-2.0
"""Environments that the machine cannot provide are left out, or are an error of the plan."""

import os
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments import container, netns
from tare.plan import parse

PLAN = """\
name = "try"
budget = "3%"
environments = ["host", "netns"]
service = { command = "sleep {port}" }
[[conditions]]
name = "plain"
[[conditions]]
name = "again"
"""


def test_what_this_machine_cannot_provide_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse(PLAN, "try.toml", Path("/plans"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    left, skipped = environments.available(plan)
    assert left.environment_names == ["host"]
    (line,) = skipped
    assert line.startswith("environment 'netns' is skipped, since this machine lacks what it needs")
    assert "root" in line
    # With nothing to compare, or with a wrong setting, there is an error.
    for old, new in (
        ('["host", "netns"]', '["netns"]'),
        ("budget", 'compare = "environments"\nbudget'),
    ):
        assert old in PLAN
        with pytest.raises(InputError, match="root rights for a network namespace"):
            environments.available(parse(PLAN.replace(old, new), "try.toml", Path("/plans")))


def test_a_wrong_setting_is_no_reason_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(container, "find", str)
    wrong = '["host", { type = "container", root = "nowhere" }]'
    plan = parse(PLAN.replace('["host", "netns"]', wrong), "try.toml", Path("/plans"))
    with pytest.raises(InputError, match="root"):
        environments.available(plan)


def test_what_is_missing_is_told_with_the_line_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse(PLAN, "try.toml", Path("/plans"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match=r'^try\.toml:3: environments\[2\]: found "netns", .*root'):
        environments.check(plan)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(netns, "find", lambda _: None)
    with pytest.raises(InputError, match=r"^try\.toml:3: environments\[2\]: .* ip to be installed"):
        environments.check(plan)
