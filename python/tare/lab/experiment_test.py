# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab.experiment import check
from tare.lab.layers import hook
from tare.plan import parse

PLAN = """\
name = "try"
budget = "3%"
environments = ["host"]
service = { command = "serve {port}" }
[load]
type = "command"
command = "shoot"
output = "shots.csv"
format = "locust"
[[conditions]]
name = "plain"
[[conditions]]
name = "layered"
layers = [
  { type = "env", variables = { A = "1" } },
]
"""
ENV = '{ type = "env", variables = { A = "1" } }'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '["host"]',
            '["host", "container"]',
            'try.toml:3: environments[1]: found "container", expected host or netns;'
            " the others are not there yet",
        ),
        (
            '"locust"',
            '"gatling"',
            'try.toml:9: load.format: found "gatling", expected one of locust, jmeter,',
        ),
        (
            ENV,
            '{ type = "hook", rules = "no.toml" }',
            'try.toml:15: conditions[1].layers[0].rules: found "no.toml", expected a file:',
        ),
        (
            ENV,
            '{ type = "proxy", program = "nginx", binary = "/bin/sh", config = "no.conf" }',
            'try.toml:15: conditions[1].layers[0].config: found "no.conf", expected a file:',
        ),
        (
            ENV,
            '{ type = "proxy", program = "nginx", binary = "/no/nginx" }',
            'try.toml:15: conditions[1].layers[0].binary: found "/no/nginx",'
            " expected a program that is installed",
        ),
        (
            ENV,
            '{ type = "proxy", program = "envoy" }',
            'try.toml:15: conditions[1].layers[0].program: found "envoy",'
            " expected a program that is installed",
        ),
    ],
)
def test_what_cannot_be_carried_out_here_is_refused_with_its_place(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "PROGRAM", sys.executable)
    monkeypatch.setattr("tare.lab.layers.proxy.find", lambda program: (
        program if program == "/bin/sh" else None
    ))  # fmt: skip
    check(parse(PLAN, "try.toml", tmp_path))
    assert old in PLAN
    with pytest.raises(InputError) as caught:
        check(parse(PLAN.replace(old, new), "try.toml", tmp_path, {"blocks": 2}))
    assert message in str(caught.value)
