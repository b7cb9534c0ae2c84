# SPDX-License-Identifier: Apache-2.0
"""The load of `tare run`: open loops, rates that are shares of the capacity, a missing program."""

import sys

import pytest
from tests.lab.conftest import NGINX_CONF, OWN_LOAD, Experiment

from tare.errors import TareError
from tare.lab.load import tare_load
from tare.lab.run.preflight import check
from tare.plan import load


def test_an_open_loop_opens_a_connection_when_all_are_busy(experiment: Experiment) -> None:
    """A server that takes 100 ms an answer bears 50/s on several connections, 10/s on one."""
    server = experiment.folder / "slow.py"
    server.write_text(SLOW_SERVER)
    load = f'{OWN_LOAD}mode = "open"\nrate = 50'
    experiment.write_plan(top='design = "blocks"', load=load.replace("100ms", "1s"))
    plan = experiment.plan.read_text()
    nginx = 'command = "nginx -p {dir} -c nginx.conf -e stderr"'
    assert nginx in plan
    slow = f'command = ["{sys.executable}", "{server}", "{{port}}"]'
    experiment.plan.write_text(plan.replace(nginx, slow))
    assert experiment.measure(blocks=1).returncode == 0
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
        assert run["requests"] >= 20


SLOW_SERVER = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Slow(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.1)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

# While it has no CPU, all connections come that the load opens.
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Slow).serve_forever()
"""

SHARE_OF_CAPACITY = f'{OWN_LOAD}mode = "constant"\nusers = 2\nrate = "10% of capacity"\n'


def test_a_rate_that_is_a_share_of_the_capacity(experiment: Experiment) -> None:
    only_with_body = 'if ($http_content_length != "8") { return 411; } return 200'
    experiment.write_plan(
        load=f'{SHARE_OF_CAPACITY}method = "POST"\nbody = "question"\nexpect_body = "hello\\n"',
        nginx=NGINX_CONF.replace("return 200", only_with_body),
    )
    text = experiment.plan.read_text().replace('{ http = "/", timeout = "60s" }', "{ tcp = true }")
    experiment.plan.write_text(text)
    experiment.measure(blocks=1)
    recorded = experiment.manifest["load"]
    assert recorded["rate"] == pytest.approx(0.1 * recorded["capacity"]["rate"])
    # Only replies with this body count for the capacity. On a machine that others use, two users
    # may be too slow for the rate, and a short run may have no reply in time.
    assert recorded["capacity"]["rate"] > 0
    assert all(run["errors"] == 0 for run in experiment.manifest["runs"])


def test_a_capacity_of_zero_is_an_error(experiment: Experiment) -> None:
    experiment.write_plan(load=f'{SHARE_OF_CAPACITY}expect_body = "goodbye"')
    done = experiment.measure(blocks=1)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "no request succeeded (body: " in last


def test_without_tare_load_it_says_what_to_do(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.write_plan()
    monkeypatch.setattr(tare_load, "PROGRAM", "/nowhere/tare-load")
    with pytest.raises(TareError, match=r"/nowhere/tare-load: missing; build .* 'make native'"):
        check(load(experiment.plan))
