# SPDX-License-Identifier: Apache-2.0
"""A run that goes wrong is invalid with its reason; the experiment goes on."""

import json
import re
import socket
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import Experiment
from tests.waiting import SECONDS

from tare.native import native

# Kills its group, the service with it, when the load has begun.
KILLER = """
import os, subprocess, sys, time
subprocess.Popen(sys.argv[2:])
while not os.path.exists(sys.argv[1] + "/../load/samples.arrow"):
    time.sleep(0.02)
os.killpg(0, 9)
"""
DIES = f'{{ type = "wrap", command = {json.dumps([sys.executable, "-c", KILLER, "{dir}"])} }}'
NEVER_READY = '{ type = "wrap", command = ["sh", "-c", "echo not today >&2; sleep 60", "sh"] }'
ENDS_AT_ONCE = '{ type = "wrap", command = ["sh", "-c", "echo broken config >&2; exit 3", "sh"] }'
HALF_FAIL = """
user root;
daemon off;
pid {dir}/half.pid;
events {}
http {
  access_log off;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {
    listen {address}:{port};
    location / {
      if ($request_id ~ "^[0-7]") { return 503; }
      proxy_pass http://{address}:{upstream};
    }
  }
}
"""


def check_one_is_valid_and_two_is_not(experiment: Experiment) -> str:
    """Asserts so of the only block, and returns the reason."""
    (first,), (second,) = experiment.runs("one"), experiment.runs("two")
    assert first["valid"], first
    assert first["requests"] > 0
    assert first["reason"] is None
    assert not second["valid"]
    return str(second["reason"])


def test_a_service_that_crashes_under_load(experiment: Experiment) -> None:
    experiment.write_plan(layers=DIES, load='warmup = "50ms"\nduration = "600ms"\nmax_errors = 1')
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert reason == "the service was killed by SIGKILL during the load"


def test_a_service_that_crashes_in_a_design_of_blocks(experiment: Experiment) -> None:
    experiment.write_plan(
        top='design = "blocks"', layers=DIES, load='warmup = "50ms"\nduration = "600ms"'
    )
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert reason == "the service was killed by SIGKILL during the load"


def test_a_service_that_ends_before_it_is_ready(experiment: Experiment) -> None:
    experiment.write_plan(layers=ENDS_AT_ONCE)
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert reason == "exited with code 3 before it was ready: broken config"
    assert experiment.runs("two")[0]["log_tail"] == ["broken config"]


def test_a_service_that_is_never_ready(experiment: Experiment) -> None:
    experiment.write_plan(layers=NEVER_READY, patience="3s")
    done = experiment.measure(blocks=1)
    assert done.returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert reason.startswith("not ready within 3 s: GET http://127.0.0.1:")
    assert experiment.runs("two")[0]["log_tail"] == ["not today"]
    assert reason in done.stderr


def test_a_program_that_is_not_there(experiment: Experiment) -> None:
    experiment.write_plan(layers='{ type = "wrap", command = "{dir}/no-such-agent --on" }')
    assert experiment.measure(blocks=1).returncode == 0
    assert "/no-such-agent: No such file" in check_one_is_valid_and_two_is_not(experiment)


def test_a_port_in_use(experiment: Experiment) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        experiment.write_plan(service=f"port = {port}")
        done = experiment.run("--json")
    assert (done.returncode, done.stdout) == (1, "")
    wanted = (
        f"port {port} of 127.0.0.1: Address already in use; find the program with"
        f" 'ss -ltnp sport = :{port}'"
    )
    assert {run["reason"] for run in experiment.manifest["runs"]} == {wanted}
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"tare: the baseline 'one' failed in the first block: {wanted}; ")


def test_too_many_errors(experiment: Experiment) -> None:
    (experiment.folder / "half.conf").write_text(HALF_FAIL)
    experiment.write_plan(
        layers='{ type = "proxy", program = "nginx", config = "half.conf" }',
        load='warmup = "50ms"\nduration = "300ms"\nexpect_status = [200]',
    )
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert "% of the requests failed, above the limit of 1.00%" in reason
    two = experiment.runs("two")[0]
    assert 0 < two["errors"] < two["requests"]


def test_a_hook_that_does_not_reach_the_service(experiment: Experiment) -> None:
    if not Path(native("bin", "tare-hook")).exists():
        pytest.skip("tare-hook is not built")
    bare = '{ type = "wrap", command = ["env", "-u", "LD_PRELOAD"] }'
    experiment.write_plan(layers=f'{bare}, {{ type = "hook" }}')
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert reason.startswith(
        "the hook recorded no socket call, so it was not loaded into the service"
    )


def test_a_proxy_that_is_never_ready_is_stopped_before_the_others_are_measured(
    experiment: Experiment,
) -> None:
    """It listens nowhere, and runs on until it is stopped."""
    still = experiment.folder / "still"
    program = experiment.folder / "never"
    program.write_text(f"#!/bin/sh\nwhile :; do touch {still}; sleep 0.02; done\n")
    program.chmod(0o755)
    layer = f'{{ type = "proxy", program = "nginx", binary = "{program}" }}'
    experiment.write_plan(layers=layer, patience="3s")
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert reason.startswith("proxy1-nginx: not ready within 3 s")
    assert still.stat().st_mtime_ns < experiment.runs("one")[0]["started_ns"]


def test_a_foreign_generator_whose_output_cannot_be_read(experiment: Experiment) -> None:
    (experiment.folder / "table").write_text("start_time,weather\n1,rain\n")
    experiment.write_plan(
        load=f'type = "command"\ncommand = ["cp", "{experiment.folder}/table", "{{output}}"]\n'
        'output = "stats.csv"\nformat = "locust"\nduration = "1s"'
    )
    done = experiment.run("--blocks", "1")
    assert done.returncode == 1
    reasons = [run["reason"] for run in experiment.manifest["runs"]]
    assert all("stats.csv:1: no " in reason for reason in reasons), reasons
    assert f"the baseline 'one' failed in the first block: {reasons[-1]}" in done.stderr


def test_what_a_foreign_generator_says_on_stdout_is_kept(experiment: Experiment) -> None:
    experiment.write_plan(
        load='type = "command"\ncommand = ["sh", "-c", "echo unable to connect; exit 1"]\n'
        'output = "stats.csv"\nformat = "locust"\nduration = "1s"'
    )
    done = experiment.measure(blocks=1)
    assert done.returncode == 1
    reasons = {run["reason"] for run in experiment.manifest["runs"]}
    assert reasons == {"the load generator exited with code 1: unable to connect"}
    log = experiment.result / "logs/block=1/one+load.log"
    assert log.read_text() == "unable to connect\n"
    assert f"unable to connect; see {log}; " in done.stderr


def test_two_runs_at_once_work_and_say_that_they_disturb_each_other(
    experiment: Experiment,
) -> None:
    experiment.write_plan(top="control = false", load='warmup = "50ms"\nduration = "1s"')
    first = experiment.start("--blocks", "1", "--out", str(experiment.folder / "first"))
    second = experiment.start("--blocks", "1", "--out", str(experiment.result))
    errors = [process.communicate(timeout=SECONDS)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), errors
    assert any("another tare run is running" in error for error in errors)
    assert all(run["valid"] for run in experiment.manifest["runs"])


def test_a_load_that_is_not_what_the_plan_says(experiment: Experiment) -> None:
    rate = 'mode = "constant"\nrate = 500000\nwarmup = "50ms"\nduration = "300ms"'
    experiment.write_plan(load=rate)
    experiment.measure(blocks=1)
    runs = [*experiment.runs("one"), *experiment.runs("two")]
    assert len(runs) == 2
    for reason in (str(run["reason"]) for run in runs):
        sent, rest = reason.split(" ", 1)
        assert 0 < int(sent.replace(",", "")) < 490_000
        assert rest.startswith("requests/s were sent instead of 500,000")


def test_a_service_that_is_throttled(experiment: Experiment, quota: Path) -> None:
    held = ["sh", "-c", 'echo 0 > "$0/cgroup.procs" && exec "$@"', str(quota)]
    experiment.write_plan(layers=f'{{ type = "wrap", command = {json.dumps(held)} }}')
    assert experiment.measure(blocks=1).returncode == 0
    reason = check_one_is_valid_and_two_is_not(experiment)
    assert re.fullmatch(
        r"the service was throttled for [\d.]+ s of [\d.]+ s: raise its CPU quota", reason
    )
    (table,) = {*experiment.result.glob("machine/condition=two/block=1/*/*.parquet")}
    rows = [row for row in pq.ParquetFile(table).read().to_pylist() if row["slice"] is None]
    of_quota = [row for row in rows if row["metric"] == "throttled_time"]
    throttled, time = (sum(row[name] for row in of_quota) for name in ("value", "duration_ns"))
    assert throttled > 0.01 * time
    (run,) = experiment.runs("two")
    (limits,) = (answer for answer in run["recommendations"] if answer["number"] == 8)
    assert (limits["answer"], limits["evidence"]) == ("broken", [reason])
