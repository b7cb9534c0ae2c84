# SPDX-License-Identifier: Apache-2.0
"""Experiments on a service that needs others: where they are, when they start, who is measured."""

import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import Experiment
from tests.rights import may_make_namespaces, may_run_containers, may_run_guests

SERVICE = Path(__file__).with_name("chained_service.py")
SERVE = f'"{sys.executable}", "{SERVICE}", "{{address}}", "{{port}}"'
PLAN = """\
name = "chain"
budget = "3%"
blocks = 1
smoke = true
control = false
environments = [{environment}]

[[services]]
name = "store"
{store}
command = [{serve}]
ready = {{ http = "/" }}
volume = "16 MiB"
environment = {{ VOLUME = "{{dir}}/volume"{variables} }}

[[services]]
name = "users"
beside = "store"
command = [{serve}, "{{store.address}}", "{{store.port}}"]
ready = {{ http = "/" }}

[service]
command = [{serve}, "{{users.address}}", "{{users.port}}"]
ready = {{ http = "/" }}
{service}

[load]
warmup = "100ms"
duration = "500ms"

[[conditions]]
name = "traced"
layers = [{{ type = "spans" }}, {{ type = "spans", at = "users" }}]

[[conditions]]
name = "plain"
{layers}
"""
UML = '{ type = "vm", machine = "uml" }'
RIGHTS: Mapping[str, Callable[[], bool]] = {
    "host": lambda: True,
    "netns": may_make_namespaces,
    "container": may_run_containers,
    "uml": may_run_guests,
    "container-in-uml": lambda: may_run_guests() and may_run_containers(),
}
TABLES = {
    "host": "'host'",
    "netns": "'netns'",
    "container": '{ type = "container", network = "bridge" }',
    "uml": UML,
    "container-in-uml": UML.replace("vm", "container-in-vm", 1),
}
GUESTS = ("uml", "container-in-uml")
everywhere = pytest.mark.parametrize(
    "environment",
    [
        name if name not in GUESTS else pytest.param(name, marks=pytest.mark.integration)
        for name in TABLES
    ],
)


def plan(environment: str = "host", service: str = "", layers: str = "", store: str = "") -> str:
    """A service that asks another one, which asks a third beside it."""
    own = ', OWN_FILE_SYSTEM = "1"' if environment in GUESTS else ""
    return PLAN.format(
        environment=TABLES[environment],
        serve=SERVE,
        variables=own,
        service=service,
        layers=layers,
        store=store,
    )


def spans_of(experiment: Experiment, condition: str) -> list[dict[str, Any]]:
    """The spans of the requests of a condition's only run."""
    (run,) = experiment.runs(condition)
    (path,) = experiment.result.glob(f"samples/**/run={run['run']}/samples.parquet")
    rows = pq.read_table(path, partitioning=None).to_pylist()
    return [row for row in rows if row["source"] != "client"]


@everywhere
def test_a_request_goes_through_all_services(experiment: Experiment, environment: str) -> None:
    if not RIGHTS[environment]():
        pytest.skip(f"{environment}: needs root and its packages")
    experiment.plan.write_text(plan(environment))
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
    spans = spans_of(experiment, "traced")
    by_span: Mapping[str, dict[str, Any]] = {row["span_id"]: row for row in spans}
    users = [row for row in spans if row["span"].startswith("users: ")]
    assert users
    for row in users:
        assert by_span[row["parent_id"]]["span"].startswith("service: ")
    assert not spans_of(experiment, "plain")


@everywhere
def test_a_database_has_a_container_everywhere(experiment: Experiment, environment: str) -> None:
    if not RIGHTS[environment]() or not may_run_containers():
        pytest.skip(f"{environment}: needs root and its packages")
    alone = f'"sh", "-c", "test -e /.tare-wait && exec \\"$@\\"", "sh", {SERVE}'
    text = plan(environment, store="container = true")
    experiment.plan.write_text(text.replace(SERVE, alone, 1))
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        assert run["valid"], run


@pytest.mark.exhaustive
@everywhere
def test_replicas_share_the_requests(experiment: Experiment, environment: str) -> None:
    if not RIGHTS[environment]():
        pytest.skip(f"{environment}: needs root and its packages")
    experiment.plan.write_text(plan(environment).replace('beside = "store"', "replicas = 3"))
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    (run,) = experiment.runs("traced")
    assert run["valid"], run
    logs = {Path(log).name.partition("+")[2]: experiment.result / log for log in run["logs"]}
    assert "users.log" in logs, "no log of the balancer"
    answered = [logs[f"users-{number}.log"].read_text().count("GET / ") for number in (1, 2, 3)]
    # Ready checks are spread unequally.
    assert min(answered) > max(answered) / 2, answered
    assert spans_of(experiment, "traced")


def test_the_cpu_time_of_all_services_counts(experiment: Experiment) -> None:
    experiment.plan.write_text(plan())
    assert experiment.measure().returncode == 0
    (run,) = experiment.runs("plain")
    assert run["cpu"]["service_ns_per_request"] > 0
    logs = {Path(log).name.partition("+")[2] for log in run["logs"]}
    assert {"store.log", "users.log"} <= logs


def test_the_log_of_the_failed_service_is_quoted(experiment: Experiment) -> None:
    fails = f'"{sys.executable}", "-c", "import sys; sys.exit(\'no configuration\')", "{{port}}"'
    store, users, service = plan().split(SERVE, 2)
    experiment.plan.write_text(f"{store}{SERVE}{users}{fails}{service}")
    done = experiment.measure()
    assert "users: exited with code 1 before it was ready" in done.stderr
    tails = [run["log_tail"] for run in experiment.manifest["runs"]]
    assert tails
    for tail in tails:
        assert tail[0] == "no configuration"
        assert not any("GET /" in line for line in tail), "the log of a service that is ready"


def test_only_what_a_service_needs_delays_its_start(experiment: Experiment) -> None:
    def serve(before: str) -> str:
        return f'"sh", "-c", "{before}; exec \\"$@\\"", "sh", {SERVE}'

    text = plan()
    # The first is ready only after the second has started, the third looks for both.
    first = serve("until test -e {plan}/second; do sleep 0.02; done; touch {plan}/first")
    second = serve("touch {plan}/second")
    third = serve("test -e {plan}/first || exit 9")
    text = text.replace('beside = "store"\n', "")
    text = text.replace(SERVE, first, 1).replace(
        f'"users"\ncommand = [{SERVE}', '"users"\ncommand = [THIRD', 1
    )
    other = f'[[services]]\nname = "other"\ncommand = [{second}]\nready = {{ http = "/" }}\n\n'
    text = text.replace('[[services]]\nname = "users"', f'{other}[[services]]\nname = "users"', 1)
    experiment.plan.write_text(text.replace("THIRD", third))
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        assert run["valid"], run

    for name in ("first", "second"):
        (experiment.folder / name).unlink()
    fixed = experiment.plan.read_text().replace('name = "store"', 'name = "store"\nport = PORT', 1)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    fixed = fixed.replace("PORT", str(port)).replace(
        'ready = { http = "/" }', 'ready = { http = "/", timeout = "1s" }', 1
    )
    experiment.plan.write_text(fixed)
    experiment.result.rename(experiment.folder / "before")
    experiment.measure()
    for run in experiment.manifest["runs"]:
        assert run["reason"].startswith("store: not ready"), run


def test_a_service_can_be_measured_alone(experiment: Experiment) -> None:
    experiment.plan.write_text(plan().replace('beside = "store"', 'beside = "store"\npath = "/"'))
    done = experiment.run("--isolate", "users")
    assert done.returncode == 0, done.stderr
    assert experiment.manifest["name"] == "chain-users"
    (run,) = experiment.runs("traced")
    assert run["valid"], run
    assert {row["span"] for row in spans_of(experiment, "traced")} == {"users: GET / (server)"}
    logs = {Path(log).name.partition("+")[2] for log in run["logs"]}
    assert "store.log" in logs
    assert "users.log" not in logs


def test_a_service_that_is_not_ready_is_named(experiment: Experiment) -> None:
    broken = plan().replace(
        f'name = "users"\nbeside = "store"\ncommand = [{SERVE}',
        'name = "users"\ncommand = ["false", "{port}"',
    )
    experiment.plan.write_text(broken)
    done = experiment.measure()
    for run in experiment.manifest["runs"]:
        assert not run["valid"]
        assert run["reason"].startswith("users: exited with code 1 before it was ready")
    assert done.returncode


def test_a_service_that_ends_during_the_load_is_named(experiment: Experiment) -> None:
    text = plan().replace('name = "users"', 'name = "users"\nstop_signal = "KILL"', 1)
    brief = f'"timeout", "--signal=KILL", "0.01", {SERVE}'
    experiment.plan.write_text(text.replace(SERVE, brief, 1))
    experiment.measure()
    for run in experiment.manifest["runs"]:
        assert not run["valid"]
        assert run["reason"].startswith("store: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('beside = "store"', 'beside = "user"', 'services[2].beside: found "user"'),
        ("{store.port}", "{front.port}", "address or port of a service above it (store"),
        ('name = "users"', 'name = "store"', "different names of services"),
        ('at = "users"', 'at = "front"', "expected one of services: store, users"),
        ('"spans", at', '"link", at', "at: found an unknown key"),
        ("'host'", "'pod'", "no environment of type pod with services"),
        ('volume = "16 MiB"', "volume = 16", 'a size such as "512 MiB"'),
        ('"{port}", "{store.address}"', '"80", "{store.address}"', "services[2].command"),
    ],
)
def test_mistakes_are_named_with_their_place(
    experiment: Experiment, old: str, new: str, message: str
) -> None:
    text = plan()
    assert old in text
    experiment.plan.write_text(text.replace(old, new))
    done = experiment.measure()
    assert done.returncode == 2
    assert message in done.stderr
