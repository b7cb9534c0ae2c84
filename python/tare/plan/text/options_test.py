# SPDX-License-Identifier: Apache-2.0
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tare.errors import InputError
from tare.plan import Plan, PlanOptions, TcpLoad, from_options, parse
from tare.plan.schema.layers import LAYERS
from tare.plan.text.toml_text import toml_text

NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
)
VARIABLE = st.from_regex(r"[A-Z_]{1,4}", fullmatch=True)
SHORTHAND = st.one_of(
    st.just("hook"),
    st.builds("hook:{}".format, TEXT),
    st.sampled_from(["log", "log:lz4", "wrap:nice -n 3", "wrap:sh -c 'a \"b\"'"]),
    st.builds("env:{}={}".format, VARIABLE, TEXT),
)
CONDITIONS = st.dictionaries(NAME.filter(lambda name: name != "plain"), SHORTHAND, min_size=1)


def plan_of(**options: Any) -> Plan:
    return from_options(PlanOptions(**options), Path("/here"))


@settings(max_examples=50, deadline=None)
@given(
    conditions=CONDITIONS,
    argument=TEXT,
    budget=st.sampled_from(["3%", "0.05", "12.5 %"]),
    environments=st.sampled_from([[], ["host"], ["netns", "host"]]),
    send=TEXT.map(lambda text: text.replace("\\", r"\\")),
)
def test_the_printed_plan_is_the_same_plan(
    conditions: dict[str, str], argument: str, budget: str, environments: list[str], send: str
) -> None:
    plan = plan_of(
        service=f"serve {{port}} {shlex.quote(argument)}",
        conditions=[f"{name}={layer}" for name, layer in conditions.items()],
        budget=budget,
        environments=environments,
        # As TOML writes it: without quotes `1` is a number.
        load=["type=tcp", f"send={_toml(send)}", "reply_bytes=3"],
    )
    again = parse(plan.text, "printed.toml", Path("/here"))
    assert again.model_dump() == plan.model_dump()
    assert again.compared == ["plain", *conditions, "plain~again"]
    assert isinstance(plan.load, TcpLoad)
    assert plan.load.send == send
    assert plan.service.command == ["serve", "{port}", argument]


def _toml(text: str) -> str:
    return toml_text({"value": text}).removeprefix("value = ").rstrip("\n")


JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), TEXT, st.text("a'\"\\\n\t\r")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text("ab.- é", max_size=4), JSON))
def test_written_toml_reads_back_as_the_same_data(data: dict[str, Any]) -> None:
    try:
        text = toml_text(data)
        text.encode()
    except UnicodeEncodeError:
        return
    assert tomllib.loads(text) == data


def test_written_toml_has_no_character_that_changes_the_order_of_text() -> None:
    for name in ("user\u202etxt.exe", "a\u2066b\u2069", "line\none\u200f", "tag\U000e0041"):
        text = _toml(name)
        assert text.isprintable()
        assert tomllib.loads(f"value = {text}") == {"value": name}


def test_a_condition_named_twice_has_both_layers_the_first_nearest_to_the_service() -> None:
    plan = plan_of(service="serve {port}", conditions=["two=env:A=1", "two=hook:r.toml", "bare"])
    assert [condition.name for condition in plan.conditions] == ["two", "bare"]
    assert [layer.type for layer in plan.conditions[0].layers] == ["env", "hook"]
    assert plan.baseline_name == "bare"
    assert not plan.has_file


def test_a_placement_is_a_rule_or_the_cpus_of_both() -> None:
    known = {"service": "serve {port}", "conditions": ["a=hook"]}
    assert plan_of(**known, placement=["free"]).placement == "free"
    plan = plan_of(**known, placement=["service=2-3", "generator=1"])
    assert plan.placement == {"service": [2, 3], "generator": [1]}
    assert parse(plan.text, "x", Path()).placement == plan.placement


def test_every_layer_has_a_shorthand_of_its_own_key() -> None:
    for kind, layer in LAYERS.items():
        assert layer.SHORTHAND.startswith(kind)
        assert layer.SHORTHAND_KEY in layer.model_fields


def test_a_file_is_written_into_the_plan(tmp_path: Path) -> None:
    (tmp_path / "own.conf").write_text("listen {port};\n# it's \\d\n")
    plan = plan_of(
        service="serve", conditions=["a=hook"], files=[f"conf/serve.conf={tmp_path}/own.conf"]
    )
    assert plan.service.files == {"conf/serve.conf": "listen {port};\n# it's \\d\n"}
    assert parse(plan.text, "x", Path()).model_dump() == plan.model_dump()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"conditions": ["a=hok"]}, "--condition a=hok: found layer 'hok', expected one of hook["),
        ({"conditions": ["a=env"]}, "--condition a=env: has no value, expected env:VARIABLE=VALUE"),
        (
            {"conditions": ["a=env:A"]},
            "--condition a=env:A: found 'A', expected env:VARIABLE=VALUE",
        ),
        ({"conditions": ["env:A=1"]}, "--condition env:A=1: has no name, expected NAME=env:A=1"),
        ({"conditions": ["a b=hook"]}, '--condition: name: found "a b", expected'),
        ({"conditions": ["plain=hook"]}, "--condition plain: is the name of the baseline"),
        ({"conditions": ["a=proxy:apache"]}, '--condition: layers program: found "apache"'),
        ({"budget": "3"}, "--budget: found 3, expected a percentage"),
        ({"budget": "2026-01-01"}, '--budget: found "2026-01-01", expected a percentage'),
        ({"load": ["users=1979-05-27"]}, '--load: users: found "1979-05-27", expected a whole'),
        ({"placement": ["near"]}, '--placement: found "near", expected "same-core"'),
        ({"placement": ["service=1"]}, "--placement: found {"),
        ({"placement": ["service=1", "free"]}, "--placement: found 'free' among 2, expected one"),
        ({"placement": ["service=x", "generator=1"]}, '--placement: service: found "x", expected'),
        ({"ready": "udp"}, "--ready: found 'udp', expected tcp, http=/PATH or log="),
        ({"load": ["users"]}, "--load: found 'users', expected KEY=VALUE"),
        ({"load": ["user=3"]}, "--load: user: found an unknown key, expected users"),
        ({"load": ["users=many"]}, '--load: users: found "many", expected a whole number'),
        (
            {"environments": ["moon"]},
            "--environment: found \"moon\", expected 'host', 'netns', 'container',",
        ),
        ({"environments": ["netns:delay"]}, "--environment: found 'delay', expected KEY=VALUE,"),
        ({"environments": ["netns:delay=5"]}, "--environment: delay: found 5, expected a duration"),
        ({"environments": ["netns:mtu=9000"]}, "--environment: mtu: found an unknown key,"),
        ({"files": ["a=/nowhere"]}, "--file a=/nowhere: /nowhere: No such file or directory;"),
        ({"port": 0}, "--port: found 0, expected greater than"),
        ({"service": "serve 'a"}, '--service: found "serve \'a", expected a command'),
        ({"service": "serve"}, "--service: found"),
    ],
)
def test_errors_name_the_option(options: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_of(**{"service": "serve {port}", "conditions": ["a=hook"], **options})
    assert str(caught.value).startswith(error)
    assert "\n" not in str(caught.value)


def test_an_environment_has_settings_after_a_colon() -> None:
    wan = "netns:name=wan,delay=20ms,loss=1%,rate=100 Mbit/s"
    plan = plan_of(service="serve {port}", conditions=["a=hook"], environments=["host", wan])
    assert plan.environment_names == ["host", "wan"]
    assert plan.environment("wan").model_dump() == {
        "type": "netns", "name": "wan", "rate": 100_000_000, "loss": 0.01, "delay": 20_000_000,
    }  # fmt: skip
