# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.plan import Plan, TareLoad, TcpLoad, load, parse
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'budget = "3%"',
            'budget = "3"',
            'plans/try.toml:2: budget: found "3", expected a percentage such as "3%",'
            " or a fraction from 0 to 1",
        ),
        (
            'budget = "3%"',
            "budget = 1",
            "plans/try.toml:2: budget: found 1, expected a fraction above 0 and below 1",
        ),
        (
            'http = "/"',
            'http = "/café"',
            'plans/try.toml:7: service.ready.http: found "/café", expected a path such as',
        ),
        (
            'variables = { A = "1" }',
            'variables = { "A=B" = "1" }',
            'plans/try.toml:20: conditions[2].layers[1].variables.A=B: found "A=B",'
            " expected a variable name without =",
        ),
        (
            'variables = { A = "1" }',
            'variables = { A = "\\u0000" }',
            "plans/try.toml:20: conditions[2].layers[1].variables.A: found"
            ' "\\u0000", expected a text without a zero byte',
        ),
        ("seed = 7", 'seed = "7"', 'plans/try.toml:3: seed: found "7", expected a whole number'),
        (
            "seed = 7",
            "sed = 7",
            "plans/try.toml:3: sed: found an unknown key, expected seed",
        ),
        (
            "[load]",
            "[calibration]\nvariable = 'BUSY'\ndelay = ['1us']\n[load]",
            "plans/try.toml:13: calibration.delay: found an unknown key, expected delays",
        ),
        (
            "[load]",
            "[calibration]\nvariable = 'BUSY'\ndelays = ['0us']\n[load]",
            'plans/try.toml:13: calibration.delays: found ["0us"], expected a delay above zero',
        ),
        (
            "[load]",
            "[calibration]\nvariable = 'BUSY'\nrequests = { long = '1.5us' }\n[load]",
            'plans/try.toml:13: calibration.requests.long: found "1.5us",'
            " expected whole microseconds",
        ),
        (
            'duration = "300ms"',
            "duration = 300",
            "plans/try.toml:12: load.duration: found 300,"
            ' expected a duration such as "5ms" or "2s"',
        ),
        (
            'duration = "300ms"',
            "ca = 'ca.pem'",
            'plans/try.toml:12: load.ca: found "ca.pem", expected https = true with ca',
        ),
        (
            'duration = "300ms"',
            "connections = 2",
            'plans/try.toml:12: load.connections: found 2, expected http = "2":'
            " with HTTP/1.1 each user has its own connection",
        ),
        (
            'duration = "300ms"',
            'type = "tcp"\nsend = "x"',
            'plans/try.toml:11: load: found {"type": "tcp", "send": "x"},'
            " expected exactly one of reply, reply_until and reply_bytes",
        ),
        (
            'duration = "300ms"',
            'type = "tcp"\nreply = "resp"',
            'plans/try.toml:11: load: found {"type": "tcp", "reply": "resp"},'
            " expected exactly one of send and send_file",
        ),
        (
            'duration = "300ms"',
            """type = "tcp"\nreply = "resp"\nsend = 'a\\q'""",
            'plans/try.toml:14: load.send: found "a\\\\q", expected a text with no other escapes'
            r" than \r, \n, \t, \0, \xHH or \\",
        ),
        (
            'duration = "300ms"',
            'type = "tcp"\nreply = "resp"\nsend = "x"\nbody = "x"',
            "plans/try.toml:15: load.body: found an unknown key, expected one of",
        ),
        (
            'duration = "300ms"',
            'type = "tcp"\nreply = "resp"\nsend = "x"\nusers = 65536\npipeline = 32',
            "plans/try.toml:16: load.pipeline: found 32, expected at most 1048576 requests",
        ),
        (
            'duration = "300ms"',
            'type = "command"\nformat = "locust"\noutput = "x"',
            "plans/try.toml:11: load.command: found nothing, expected this key",
        ),
        (
            'rules = "rules.toml"',
            "rules = 5",
            "plans/try.toml:21: conditions[2].layers[2].rules: found 5, expected a text",
        ),
        (
            'rules = "rules.toml"',
            'rule = "rules.toml"',
            "plans/try.toml:21: conditions[2].layers[2].rule: found an unknown key, expected rules",
        ),
        (
            'type = "hook", rules = "rules.toml"',
            'type = "hok"',
            'plans/try.toml:21: conditions[2].layers[2]: found type "hok", expected one of'
            " 'hook', 'link', 'log', 'spans', 'proxy', 'wrap'",
        ),
        (
            '{ http = "/", timeout = "2s" }',
            '{ http = "/", tcp = true }',
            'plans/try.toml:7: service.ready: found {"http": "/", "tcp": true},'
            " expected exactly one of http, tcp and log",
        ),
        (
            'name = "hook"',
            'name = "a/b"',
            'plans/try.toml:18: conditions[2].name: found "a/b", expected',
        ),
        (
            "[load]",
            '[load]\nmode = "open"',
            'plans/try.toml:11: load: found {"mode": "open", "duration": "300ms"},'
            ' expected a rate with mode = "open"',
        ),
        (
            'duration = "300ms"',
            "rate = 5",
            "plans/try.toml:12: load.rate: found 5, expected no rate with mode = ",
        ),
        (
            "seed = 7",
            'baseline = "plane"',
            'plans/try.toml:3: baseline: found "plane", expected a baseline that is one of'
            " the conditions: plain, hook",
        ),
        ('name = "try"\n', "", "plans/try.toml:1: name: found nothing, expected this key"),
        ('"3%"', '"3%', "plans/try.toml:2: not TOML:"),
        (
            '[service.files]\n"nginx.conf"',
            '[service.files]\n"../x"',
            'plans/try.toml:9: service.files.../x: found "../x", expected a relative path',
        ),
        (
            '"nginx.conf" = ',
            '"conf" = "x"\n"conf/d/nginx.conf" = ',
            'plans/try.toml:10: service.files.conf/d/nginx.conf: found "listen {port};",'
            ' expected a folder, not a file, at "conf"',
        ),
        (
            "seed = 7",
            'environments = ["host", "moon"]',
            "plans/try.toml:3: environments[2]: found \"moon\", expected 'host', 'netns',"
            " 'container'",
        ),
        (
            "seed = 7",
            "environments = [7]",
            "plans/try.toml:3: environments[1]: found 7, expected 'host', 'netns', 'container',",
        ),
        (
            "seed = 7",
            'environments = ["host", { type = "moon" }]',
            "plans/try.toml:3: environments[2]: found type \"moon\", expected one of 'host',"
            " 'netns', 'container'",
        ),
        (
            "seed = 7",
            'environments = [{ type = "netns", nam = "a" }]',
            "plans/try.toml:3: environments[1].nam: found an unknown key, expected name",
        ),
        (
            "seed = 7",
            'environments = [{ type = "netns", name = "a b" }]',
            'plans/try.toml:3: environments[1].name: found "a b", expected',
        ),
        (
            "seed = 7",
            'environments = [{ name = "netns" }]',
            "plans/try.toml:3: environments[1]: found no type, expected type = 'type'",
        ),
        (
            "seed = 7",
            'environments = ["netns", { type = "netns" }]',
            'plans/try.toml:3: environments: found ["netns", {"type": "netns"}], expected different'
            ' names of environments (found "netns" twice)',
        ),
        (
            PLAN[PLAN.rindex("\n[[conditions]]") :],
            "",
            'plans/try.toml:14: conditions: found [{"name": "plain"}], expected at least 2'
            " conditions to compare",
        ),
        (
            'type = "env", variables = { A = "1" }',
            'type = "hook"',
            'plans/try.toml:19: conditions[2].layers: found [{"type": "hook"}, {"type": "hook",'
            ' "rules": "rules.toml"}], expected one hook layer at most',
        ),
        (
            "nginx -p {dir}",
            "nginx -p {dri}",
            'plans/try.toml:6: service.command: found "nginx -p {dri} -c nginx.conf", expected one'
            " of {address}, {dir}, {plan}, {port} instead of {dri}",
        ),
        (
            'A = "1"',
            'A = "{home}/{port}"',
            'plans/try.toml:20: conditions[2].layers[1].variables.A: found "{home}/{port}",'
            " expected one of {address}, {dir}, {plan}, {port} instead of {home}; if the program"
            " itself takes {home}, write { home }",
        ),
        (
            '"listen {port};"',
            '"listen {adress}:{port};"',
            'plans/try.toml:9: service.files.nginx.conf: found "listen {adress}:{port};",'
            " expected {address} instead of {adress}",
        ),
        (
            '"listen {port};"',
            '"listen 80;"',
            'plans/try.toml:6: service.command: found "nginx -p {dir} -c nginx.conf", expected'
            ' {port} for "plain", as in "my-server --port {port}" or "env PORT={port} my-server";',
        ),
        (
            "seed = 7\n\n[service]",
            'design = "interleaved"\n[service]\nport = 80',
            'plans/try.toml:3: design: found "interleaved", expected design = "blocks":'
            " the service has a fixed port",
        ),
        (
            'duration = "300ms"',
            "users = 2\nthreads = 3",
            "plans/try.toml:13: load.threads: found 3, expected at most 2, the number of users",
        ),
    ],
)
def test_errors_name_file_line_key_found_and_expected(old: str, new: str, message: str) -> None:
    assert message in error_of(old, new)


def test_all_errors_of_a_plan_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read(PLAN.replace("seed = 7", 'seed = "7"').replace('"300ms"', "300"))
    assert str(caught.value).count("plans/try.toml:") == 2
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"/nowhere\.toml: No such file"):
        load(Path("/nowhere.toml"))


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


AGENT = 'layers = [{ type = "agent", name = "probe", start = "probe --all" }]'
IN_TURNS = (
    PLAN[: PLAN.index("[load]")]
    + f"""
[[conditions]]
name = "off"

[[conditions]]
name = "on"
{AGENT}
"""
)


def test_a_layer_of_the_whole_machine_takes_turns() -> None:
    plan = read(IN_TURNS)
    assert plan.design_used == "alternating"
    assert (plan.turn, plan.turns, plan.settle) == (2 * 10**9, 8, 5 * 10**8)
    assert plan.has_whole_blocks
    assert read(PLAN).has_whole_blocks
    assert not read(PLAN.replace("seed = 7", 'design = "blocks"')).has_whole_blocks


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", "turns = 7", "try.toml:3: turns: found 7, expected"),
        (
            "seed = 7",
            'design = "interleaved"',
            'try.toml:3: design: found "interleaved", expected design = "alternating": a layer'
            " covers the whole machine",
        ),
        (
            "seed = 7",
            'turn = "9ms"',
            'try.toml:3: turn: found "9ms", expected at least two slices of the load',
        ),
        (
            "[[conditions]]",
            '[load]\nduration = "5s"\n[[conditions]]',
            'load.duration: found "5s", expected turn and turns instead of a duration',
        ),
        (
            "[[conditions]]",
            '[load]\ntype = "command"\ncommand = "x"\noutput = "x"\nformat = "csv"\n[[conditions]]',
            "a load of Tare's own: the lab decides when the last turn ends",
        ),
        (
            'name = "off"',
            'name = "off"\nlayers = [{ type = "env", variables = { A = "1" } }]',
            "expected the same layers of the service in all conditions",
        ),
        (
            AGENT,
            AGENT.replace("}]", "}, { type = 'agent', name = 'probe', start = 'x' }]"),
            'expected agents with different names, not twice "probe"',
        ),
        (
            '"probe --all"',
            '"probe", stop = "kill"',
            "expected ready with stop: nothing else shows whether the agent runs",
        ),
        (AGENT, "", "no error"),
    ],
)
def test_what_does_not_fit_turns_is_refused(old: str, new: str, message: str) -> None:
    assert old in IN_TURNS
    text = IN_TURNS.replace(old, new, 1)
    if message == "no error":
        assert read(text).design_used == "interleaved"
        text = text.replace("seed = 7", 'design = "alternating"')
        message = "expected a layer that covers the machine (agent, map) in some condition"
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)


def test_turns_need_a_design_with_turns() -> None:
    assert 'try.toml:3: turn: found "1s", expected design = "alternating" with turn' in error_of(
        "seed = 7", 'turn = "1s"'
    )
