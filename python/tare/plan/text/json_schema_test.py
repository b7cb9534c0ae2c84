# SPDX-License-Identifier: Apache-2.0
"""The schema accepts and refuses what the reader does, as far as a schema can say it."""

import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tare.errors import InputError
from tare.plan import load, parse
from tare.plan.schema.values import duration_ns
from tare.plan.text.json_schema import duration_text, plan_schema

PLANS = sorted((Path(__file__).parents[4] / "plans").glob("*.toml"))
VALIDATOR = Draft202012Validator(plan_schema())
PLAN = """
name = "try"
budget = "3%"
[service]
command = "serve {port}"
[load]
duration = "300ms"
[[conditions]]
name = "plain"
[[conditions]]
name = "hook"
layers = [{ type = "hook" }]
"""


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(plan_schema())


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_ready_made_plans_are_accepted(plan: Path) -> None:
    load(plan)
    VALIDATOR.validate(tomllib.loads(plan.read_text()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('"3%"', "0.05"),
        ('"serve {port}"', '["serve", "{port}"]'),
        ("[load]", "[load]\ntype = 'tcp'\nsend = 'x'\nreply = 'resp'"),
        ("[load]", "[load]\nmode = 'open'\nrate = '80% of capacity'"),
        ("[load]", "[load]\nmode = 'open'\nrate = 1000"),
        ('"3%"', '"3%"\nplacement = "free"'),
        ('"3%"', '"3%"\nplacement = { service = "2-3,5", generator = "1" }'),
        ('{ type = "hook" }', '{ type = "env", variables = { A = "1" } }'),
        ('name = "try"', 'name = "try"\nenvironments = ["netns", { type = "host", name = "a" }]'),
        ("[load]", '[[environments]]\ntype = "netns"\n[load]'),
        ('name = "try"', 'name = "try"\nenvironments = ["container"]'),
        ("[load]", '[[environments]]\ntype = "container"\nnetwork = "bridge"\ncpus = 1\n[load]'),
        ("[load]", '[[environments]]\ntype = "container"\nmemory = "1.5 GiB"\n[load]'),
        (
            'name = "try"',
            'name = "try"\nenvironments = [{ type = "netns", delay = "20ms", loss = "1%",'
            ' rate = "2.5 Mbit/s" }]',
        ),
    ],
)
def test_what_the_reader_takes_is_accepted(old: str, new: str) -> None:
    text = PLAN.replace(old, new, 1)
    parse(text, "try.toml", Path())
    VALIDATOR.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"3%"', '"3"'),
        ('"3%"', "1"),
        ('"300ms"', "300"),
        ('"300ms"', '"300"'),
        ('name = "try"', ""),
        ('name = "try"', 'name = "try"\nsed = 7'),
        ('name = "try"', 'name = "try"\nenvironments = ["moon"]'),
        ('name = "try"', 'name = "try"\nenvironments = [{ type = "moon" }]'),
        ('name = "try"', 'name = "try"\nenvironments = [{ type = "host", nam = "a" }]'),
        ('name = "try"', 'name = "try"\nenvironments = [{ name = "host" }]'),
        ("[load]", '[[environments]]\ntype = "container"\ncpus = 0\n[load]'),
        ("[load]", '[[environments]]\ntype = "container"\nmemory = 512\n[load]'),
        ("[load]", '[[environments]]\ntype = "netns"\nrate = 100\n[load]'),
        ("[load]", '[[environments]]\ntype = "container"\nnetwork = "none"\n[load]'),
        ('"3%"', '"3%"\nplacement = "same"'),
        ('"3%"', '"3%"\nplacement = { service = "2-3" }'),
        ('"3%"', '"3%"\nplacement = { service = "2-3", generator = "" }'),
        ("[load]", "[load]\nuser = 7"),
        ("[load]", "[load]\nrate = 'fast'"),
        ('type = "hook"', 'type = "hok"'),
        ('type = "hook"', 'type = "hook", rule = "r.toml"'),
    ],
)
def test_what_the_reader_refuses_is_refused(old: str, new: str) -> None:
    assert old in PLAN
    text = PLAN.replace(old, new, 1)
    with pytest.raises(InputError):
        parse(text, "try.toml", Path())
    assert not VALIDATOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("text", ["0s", "5ms", "90s", "1m", "250us", "1h", "7ns"])
def test_a_duration_is_written_as_it_was_read(text: str) -> None:
    assert duration_text(duration_ns(text)) == text
