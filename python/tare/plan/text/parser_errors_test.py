# SPDX-License-Identifier: Apache-2.0
"""Errors in plans: file, line, key, what was found and what was expected."""

from pathlib import Path

import pytest

from tare.errors import InputError
from tare.plan import load
from tare.plan.text.parser_test import PLAN, error_of, read


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
            " expected exactly one of http, tcp, log and command",
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
            'environments = [{ type = "netns", delay = "500ms" }]',
            'plans/try.toml:3: environments[1].delay: found "500ms", expected at most "400ms"',
        ),
        (
            "seed = 7",
            'environments = [{ type = "netns", loss = "60%" }]',
            'plans/try.toml:3: environments[1].loss: found "60%", expected at most "50%"',
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
            '{ type = "env", variables = { A = "1" } }',
            '{ type = "spans" }, { type = "spans" }',
            'plans/try.toml:19: conditions[2].layers: found [{"type": "spans"}, {"type": "spans"},'
            ' {"type": "hook", "..., expected one spans layer at most',
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
