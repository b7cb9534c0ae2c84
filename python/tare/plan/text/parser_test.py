# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.plan import Plan, TareLoad, TcpLoad, parse
from tare.plan.schema.layers import EnvLayer, HookLayer
from tare.plan.schema.values import ShareOfCapacity

PLAN = """\
name = "try"
budget = "3%"
seed = 7

[service]
command = "nginx -p {dir} -c nginx.conf"
ready = { http = "/", timeout = "2s" }
[service.files]
"nginx.conf" = "listen {port};"

[load]
duration = "300ms"

[[conditions]]
name = "plain"

[[conditions]]
name = "hook"
layers = [
  { type = "env", variables = { A = "1" } },
  { type = "hook", rules = "rules.toml" },
]
"""


def read(text: str) -> Plan:
    return parse(text, "plans/try.toml", Path("/plans"))


def error_of(old: str, new: str) -> str:
    assert old in PLAN
    with pytest.raises(InputError) as caught:
        read(PLAN.replace(old, new, 1))
    return str(caught.value)


def test_a_calibration_begins_at_no_delay_and_has_each_once() -> None:
    text = PLAN + "[calibration]\nvariable = 'BUSY'\ndelays = ['1ms', '50us', '1000us']\n"
    calibration = read(text).calibration
    assert calibration is not None
    assert calibration.delays == [0, 50_000, 1_000_000]
    assert (calibration.requests, calibration.repetitions) == ({}, 10)


def test_a_plan_with_its_defaults() -> None:
    plan = read(PLAN)
    assert plan.service.command == ["nginx", "-p", "{dir}", "-c", "nginx.conf"]
    assert plan.service.ready.timeout == 2 * 10**9
    assert (plan.budget, plan.blocks, plan.seed, plan.primary) == (0.03, 8, 7, "p50")
    assert isinstance(plan.load, TareLoad)
    assert (plan.load.duration, plan.load.slice) == (300 * 10**6, 5 * 10**6)
    assert plan.baseline_name == "plain"
    assert plan.design_used == "interleaved"
    env, hook = plan.conditions[1].layers
    assert env == EnvLayer(type="env", variables={"A": "1"})
    assert hook == HookLayer(type="hook", rules="rules.toml")


def test_every_block_holds_the_baseline_once_more() -> None:
    plan = read(PLAN.replace("seed = 7", 'baseline = "hook"'))
    assert (plan.groups, plan.compared) == (["host"], ["plain", "hook", "hook~again"])
    environment, again = plan.place("host", "hook~again")
    assert environment.name == "host"
    assert again.name == "hook~again"
    assert again.layers == plan.conditions[1].layers
    assert [condition.name for condition in plan.conditions] == ["plain", "hook"]


def test_a_plan_may_do_without_the_control() -> None:
    plan = read(PLAN.replace("seed = 7", "control = false"))
    assert plan.control_name is None
    assert plan.compared == ["plain", "hook"]


def test_environments_are_compared_with_each_other() -> None:
    plan = read(
        PLAN.replace("seed = 7", 'compare = "environments"\nenvironments = ["host", "netns"]')
    )
    assert plan.baseline_name == "host"
    assert (plan.groups, plan.compared) == (["plain", "hook"], ["host", "netns", "host~again"])
    environment, condition = plan.place("hook", "host~again")
    assert (environment.type, environment.name) == ("host", "host~again")
    assert condition == plan.conditions[1]
    assert plan.baseline_condition.name == "plain"


def test_no_condition_is_called_as_the_control_is() -> None:
    message = error_of('name = "hook"', 'name = "plain~again"')
    assert message.startswith('plans/try.toml:18: conditions[2].name: found "plain~again"')


def test_a_service_with_a_fixed_port_is_measured_in_blocks() -> None:
    plan = read(PLAN.replace('{port};"', '8080;"').replace("[service]\n", "[service]\nport=8080\n"))
    assert plan.design_used == "blocks"


def test_a_text_is_an_environment_with_its_defaults() -> None:
    tables = '[[environments]]\ntype = "host"\n[[environments]]\ntype = "netns"\n'
    short = read(PLAN.replace("seed = 7", 'environments = ["host", "netns"]'))
    assert short.environments == read(PLAN + tables).environments
    assert short.environment_names == ["host", "netns"]
    named = read(PLAN + tables.replace('type = "netns"', 'type = "host"\nname = "other"'))
    assert named.environment_names == ["host", "other"]
    assert named.environment("other").type == "host"


def test_services_with_one_port_are_interleaved_only_in_networks_of_their_own() -> None:
    text = PLAN.replace("[service]\n", "[service]\nport = 80\n")
    tables = '[[environments]]\ntype = "netns"\n[[environments]]\ntype = "netns"\nname = "b"\n'
    assert read(text + tables).design_used == "interleaved"
    assert read(text + tables + '[[environments]]\ntype = "host"\n').design_used == "blocks"


def test_layers_can_tell_the_port() -> None:
    text = PLAN.replace('"listen {port};"', '"listen 80;"').replace('A = "1"', 'PORT = "{port}"')
    wrap = '{ type = "wrap", command = "serve --port={port}" }'
    plan = read(text.replace('name = "plain"', f'name = "plain"\nlayers = [{wrap}]'))
    assert plan.design_used == "interleaved"


def test_a_rate_that_is_measured_first() -> None:
    text = PLAN.replace("[load]", '[load]\nmode = "open"\nrate = "80% of capacity"')
    load = read(text).load
    assert isinstance(load, TareLoad)
    assert load.needs_capacity
    assert load.rate == ShareOfCapacity(0.8)


def test_a_load_over_tcp() -> None:
    text = PLAN.replace("[load]", "[load]\ntype = 'tcp'\nsend = '\\x00\\r\\n'\nreply_bytes = 3")
    load = read(text).load
    assert isinstance(load, TcpLoad)
    assert (load.send, load.pipeline, load.most_under_way) == ("\\x00\\r\\n", 1, 1)


def test_a_proxy_before_a_load_over_tcp_needs_a_configuration() -> None:
    tcp = PLAN.replace("[load]", "[load]\ntype = 'tcp'\nsend = 'x'\nreply_bytes = 3")
    proxy = '{ type = "proxy", program = "nginx" }'
    with pytest.raises(InputError, match="expected a config for every proxy"):
        read(tcp.replace('{ type = "hook", rules = "rules.toml" }', proxy))
    own = proxy.replace(" }", ', config = "nginx.conf" }')
    read(tcp.replace('{ type = "hook", rules = "rules.toml" }', own))


def test_settings_are_in_the_text_as_it_was_run() -> None:
    plan = parse(PLAN, "try.toml", Path("/plans"), {"seed": 1234, "blocks": 2})
    assert (plan.seed, plan.blocks) == (1234, 2)
    assert read(plan.text).model_dump() == plan.model_dump()
    for text in (PLAN, PLAN.replace("seed = 7", "smoke = false")):
        plan = parse(text, "try.toml", Path("/plans"), {"smoke": True})
        assert plan.smoke
        assert read(plan.text).smoke
    with pytest.raises(InputError, match="blocks: found 0"):
        parse(PLAN, "try.toml", Path("/plans"), {"blocks": 0})
