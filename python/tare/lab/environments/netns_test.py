# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments import netns
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


def test_two_interfaces_never_get_the_same_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "ip", lambda *_: "2: eth0    inet 10.213.0.29/30 brd 10.213.0.31\n")
    assert netns._free_pair(5) == ("10.213.0.21", "10.213.0.22")
    assert netns._free_pair(6) == ("10.213.0.25", "10.213.0.26")
    assert netns._free_pair(7) == ("10.213.0.33", "10.213.0.34")  # 7 is somebody else's
    assert netns._free_pair((1 << 14) - 1) == ("10.213.255.253", "10.213.255.254")
    assert netns._free_pair(1 << 14) == ("10.213.0.1", "10.213.0.2")


def test_what_is_missing_is_told_with_the_line_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse(PLAN, "try.toml", Path("/plans"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match=r'^try\.toml:3: environments\[2\]: found "netns", .*root'):
        environments.check(plan)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(netns, "find", lambda _: None)
    with pytest.raises(InputError, match=r"^try\.toml:3: environments\[2\]: .* ip to be installed"):
        environments.check(plan)
