# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab.layers import hook
from tare.lab.run.preflight import check
from tare.plan import parse

PLAN = """\
name = "try"
budget = "3%"
environments = ["host"]
service = { command = "sleep {port}" }
[load]
type = "command"
command = "cp a b"
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
            '"locust"',
            '"tsung"',
            'try.toml:9: load.format: found "tsung", expected one of locust, jmeter,',
        ),
        (
            ENV,
            '{ type = "hook", rules = "no.toml" }',
            'try.toml:15: conditions[2].layers[1].rules: found "no.toml", expected a file:',
        ),
        (
            ENV,
            '{ type = "proxy", program = "nginx", binary = "/bin/sh", config = "no.conf" }',
            'try.toml:15: conditions[2].layers[1].config: found "no.conf", expected a file:',
        ),
        (
            ENV,
            '{ type = "proxy", program = "nginx", binary = "/no/nginx" }',
            'try.toml:15: conditions[2].layers[1].binary: found "/no/nginx",'
            " expected a program that is installed",
        ),
        (
            ENV,
            '{ type = "proxy", program = "envoy" }',
            'try.toml:15: conditions[2].layers[1].program: found "envoy",'
            " expected a program that is installed",
        ),
        (
            '"sleep {port}" }',
            '"serve {port}" }',
            'try.toml:4: service.command: found "serve {port}",'
            " expected a program: serve is not installed",
        ),
        (
            '"sleep {port}" }',
            '"./serve {port}", directory = "{plan}" }',
            'try.toml:4: service.command: found "./serve {port}", expected a program: /',
        ),
        (
            '"sleep {port}" }',
            '"sleep {port}", environment = { PATH = "/nowhere" } }',
            'try.toml:4: service.command: found "sleep {port}", expected a program: sleep is not',
        ),
        (
            '"sleep {port}" }',
            '"sleep {port}", directory = "{plan}/none" }',
            'try.toml:4: service.directory: found "{plan}/none", expected an existing folder (/',
        ),
        (
            '"cp a b"',
            '"shoot at it"',
            'try.toml:7: load.command: found "shoot at it", expected a program: shoot is not',
        ),
        (
            ENV,
            '{ type = "wrap", command = "agent --on" }',
            'try.toml:15: conditions[2].layers[1].command: found "agent --on",'
            " expected a program: agent is not installed",
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
        check(parse(PLAN.replace(old, new), "try.toml", tmp_path, {"blocks": 9}))
    assert message in str(caught.value)


def test_what_only_a_wrapper_or_a_run_knows_is_left_to_them(tmp_path: Path) -> None:
    wrap = '{ type = "wrap", command = "sh -c" }'
    text = PLAN.replace(ENV, wrap).replace('"plain"', f'"plain"\nlayers = [{wrap}]')
    check(parse(text.replace('"sleep ', '"in-a-container '), "try.toml", tmp_path))
    check(parse(PLAN.replace('"sleep ', '"{dir}/sleep '), "try.toml", tmp_path))


def test_authorities_that_are_not_there_are_said_before_anything_starts(tmp_path: Path) -> None:
    a, b = PLAN.index('type = "command"'), PLAN.index("[[conditions]]")
    text = f'{PLAN[:a]}https = true\nca = "no.pem"\n{PLAN[b:]}'
    with pytest.raises(InputError, match=r'try.toml:7: load.ca: found "no.pem", expected a file:'):
        check(parse(text, "try.toml", tmp_path))


@pytest.mark.parametrize(
    ("keys", "settings", "message"),
    [
        ("blocks = 5", {}, "try.toml:1: blocks: found 5, expected at least 6: "),
        ("blocks = 8", {"blocks": 2}, "try.toml:1: blocks: found 2, expected at least 6: "),
        ("alpha = 0.001", {}, "try.toml:1: blocks: found 8, expected at least 11: fewer blocks"),
        ("alpha = 0.001\nblocks = 10", {}, "try.toml:2: blocks: found 10, expected at least 11"),
    ],
)
def test_too_few_blocks_for_a_verdict_do_not_start_unless_the_run_is_a_smoke_run(
    keys: str, settings: dict[str, int], message: str, tmp_path: Path
) -> None:
    text = f"{keys}\n{PLAN}"
    with pytest.raises(InputError) as caught:
        check(parse(text, "try.toml", tmp_path, settings))
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("set smoke = true (--smoke) to only try the plan out")
    check(parse(f"smoke = true\n{text}", "try.toml", tmp_path, settings))
    check(parse(text, "try.toml", tmp_path, {**settings, "smoke": True}))
    check(parse(text, "try.toml", tmp_path, {**settings, "blocks": 11}))
