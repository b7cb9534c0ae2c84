# SPDX-License-Identifier: Apache-2.0
"""Every environment keeps the contract of `Environment`."""

import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticCustomError
from tests.lab.root_files import image_of, make_root_of_services
from tests.rights import may_make_namespaces, may_run_containers, may_run_pods
from tests.waiting import SECONDS, wait_for

from tare.lab import environments
from tare.lab.environments.container_in_vm import ContainerInVm
from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.fingerprint import fingerprint
from tare.lab.environments.host import output
from tare.lab.environments.launch import RunError
from tare.lab.environments.vm import Vm
from tare.lab.machine.service import Service
from tare.lab.machine.snapshot import Snapshot
from tare.lab.processes.processes import Process, Processes, StartError
from tare.lab.processes.supervisor import descendants
from tare.lab.start.ready import wait_until_ready
from tare.plan import Ready
from tare.plan.schema.environments import ENVIRONMENTS

BUSY = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
Start = Callable[..., Process]


IMAGE = "an image with the services of these tests"
GUESTS = ("vm", "container-in-vm")
CLUSTER = "pods-across-nodes"
SLOW = ("pod", CLUSTER, *GUESTS)
TABLES: list[dict[str, Any]] = [
    {"type": kind} for kind in ENVIRONMENTS if kind not in (CLUSTER, *GUESTS)
]
TABLES += [
    {"type": CLUSTER, "image": "docker.io/library/python:3.13-slim"},
    {"type": "vm", "machine": "uml"},
    {"type": "container-in-vm", "machine": "uml"},
    {"type": "netns", "delay": "1ms", "rate": "1 Gbit/s", "loss": "0.1%"},
    {"type": "container", "network": "bridge"},
    {"type": "container", "files": "layered"},
    {"type": "container", "cpus": 1.5, "memory": "1 GiB"},
    {"type": "container", "image": IMAGE},
    {"type": "container", "image": IMAGE, "network": "bridge", "files": "layered"},
]


def names(table: dict[str, Any]) -> str:
    return "-".join("image" if key == "image" else str(value) for key, value in table.items())


def params() -> list[Any]:
    """Those that take seconds to start are left to `make test-integration`."""
    slow = [pytest.mark.integration]
    return [pytest.param(table, marks=slow if table["type"] in SLOW else []) for table in TABLES]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image whose user is not root."""
    if not may_run_pods():
        pytest.skip("an image needs root and the packages podman and runc")
    root = tmp_path_factory.mktemp("image") / "root"
    make_root_of_services(root)
    with image_of(root, "environments", ["USER shop"]) as name:
        yield name


@pytest.fixture(params=params(), ids=names)
def environment(request: pytest.FixtureRequest, processes: Processes) -> Iterator[Environment]:
    """A prepared environment of each type, and with settings of each kind."""
    table = dict(request.param)
    if table.get("image") == IMAGE:
        table["image"] = request.getfixturevalue("image")
    settings = ENVIRONMENTS[table["type"]].model_validate(table)
    found = environments.of_run(settings, processes, "1/here/plain")
    try:
        found.check(settings)
    except PydanticCustomError as missing:
        pytest.skip(f"{settings.name}: this test needs {missing.message()}")
    if settings.own_network and not may_make_namespaces():
        pytest.skip(f"{settings.name}: a network namespace needs root")
    try:
        found.prepare()
        yield found
    finally:
        found.stop()


@pytest.fixture
def start(environment: Environment, tmp_path: Path) -> Start:
    """Starts a command in the environment, in a folder that was copied in."""

    def start(*command: str, name: str = "service", **variables: str) -> Process:
        environment.copy_in([tmp_path])
        cpus = sorted(os.sched_getaffinity(0))
        log = tmp_path / "log"
        program = Program(name, command, tmp_path, log, cpus, variables, grace_s=SECONDS)
        return environment.start(program)

    return start


def wait_until_printed(processes: Processes, log: Path, text: str) -> None:
    while text not in log.read_text():
        processes.wait(0.02)


def wait_until_ended(processes: Processes, process: Process) -> None:
    while process.code is None:
        processes.wait(0.02)


def test_a_service_is_reached_at_its_address(
    environment: Environment, processes: Processes, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "page").write_text("carried in")
    address, port = environment.address, environment.port(None)
    is_remote = environment.settings.is_remote
    python = "python3" if is_remote else sys.executable
    service = start(python, "-m", "http.server", str(port), "--bind", address)
    log = tmp_path / "log"
    wait_until_ready(
        Ready(tcp=True), service, processes, address=address, port=port, log=log,
        environment=environment,
    )  # fmt: skip

    def page() -> bytes:
        with urllib.request.urlopen(f"http://{address}:{port}/page") as answer:
            return bytes(answer.read())

    if is_remote:
        url = f"http://{address}:{port}/page"
        script = f"import urllib.request as of; print(of.urlopen({url!r}).read())"
        assert environment.exec_at_load(["python3", "-c", script]) == "b'carried in'\n"
    else:
        assert environment.in_network(page) == b"carried in"
    processes.stop([service])


def test_signals_and_exit_codes_are_those_of_the_program(
    processes: Processes, start: Start, tmp_path: Path
) -> None:
    service = start("sh", "-c", 'trap "exit 7" TERM; echo up; while :; do sleep 0.01; done')
    wait_until_printed(processes, tmp_path / "log", "up")
    processes.stop([service])
    assert service.code == 7


def test_kill_9_of_the_service_is_its_end(
    environment: Environment, processes: Processes, start: Start, tmp_path: Path
) -> None:
    service = start("sh", "-c", "echo up; exec sleep 60")
    wait_until_printed(processes, tmp_path / "log", "up")
    if environment.settings.is_remote:
        environment.exec(["sh", "-c", "kill -9 -1"])
    for pid in environment.family(service).pids:
        with suppress(ProcessLookupError):  # one may end with another
            os.kill(pid, signal.SIGKILL)
    wait_until_ended(processes, service)
    assert service.code in (-signal.SIGKILL, 128 + signal.SIGKILL)


def test_a_program_that_does_not_exist_is_an_error(start: Start, processes: Processes) -> None:
    try:
        service = start("/nowhere/program")
    except StartError:
        return
    wait_until_ended(processes, service)  # of a command before it that starts it
    assert service.code != 0


def test_what_a_program_writes_is_on_this_host_when_it_has_ended(
    environment: Environment, processes: Processes, start: Start, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    service = start("sh", "-c", f'echo "$GREETING" >{written}', GREETING="hello")
    wait_until_ended(processes, service)
    environment.copy_out([written, tmp_path / "never-written"])
    assert written.read_text() == "hello\n"


def test_a_family_is_all_processes_of_a_program_with_their_cpu_time(
    environment: Environment, processes: Processes, start: Start, tmp_path: Path
) -> None:
    service = start("sh", "-c", f"sleep 60 & {BUSY}; echo done; wait")
    wait_until_printed(processes, tmp_path / "log", "done")
    family = environment.family(service)
    assert len(family.pids) >= 2 or environment.settings.is_remote
    assert environment.pids(service) == family.pids
    assert family.cpu_ns > 0
    processes.stop([service])
    if isinstance(environment, (Vm, ContainerInVm)):  # its guest is up until then
        environment.stop()
    assert not [pid for pid in family.pids if pid in descendants(os.getpid())]


def test_metrics_of_a_service_are_those_of_its_family(
    environment: Environment, processes: Processes, start: Start, tmp_path: Path
) -> None:
    service = start("sh", "-c", f"sleep 60 & {BUSY}; echo done; wait")
    wait_until_printed(processes, tmp_path / "log", "done")
    family = environment.family(service)
    snapshot = Snapshot()
    Service(family.pids).read(snapshot)
    if environment.settings.is_remote:
        assert not snapshot.levels
        return
    found: dict[str, float] = dict(snapshot.levels)
    for (metric, _), value in snapshot.counters.items():
        found[metric] = found.get(metric, 0) + value
    used = found["cpu_user"] + found["cpu_system"]
    assert abs(used - family.cpu_ns) <= 50_000_000  # processes have ticks
    is_guest = isinstance(environment, (Vm, ContainerInVm))
    assert 0 < found["memory"] < (1 << 30 if is_guest else 100 << 20)
    own_network = environment.settings.own_network and not is_guest
    assert ("network_loopback" in found) == own_network
    processes.stop([service])


def test_exec_returns_what_a_command_prints_and_raises_its_complaint(
    environment: Environment,
) -> None:
    assert environment.exec(["echo", "one", "two"]) == "one two\n"
    with pytest.raises(RunError, match="no such luck"):
        environment.exec(["sh", "-c", "echo no such luck >&2; exit 3"])
    with pytest.raises(RunError, match="/nowhere/program"):
        environment.exec(["/nowhere/program"])


def test_a_fixed_port_is_refused_only_if_it_is_taken_there(environment: Environment) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        if environment.settings.own_network:
            assert environment.port(taken) == taken
        else:
            with pytest.raises(RunError, match=f"port {taken} of 127.0.0.1: Address already in"):
                environment.port(taken)
    assert environment.port(taken) == taken


def test_free_ports_are_different(environment: Environment) -> None:
    assert len({environment.free_port() for _ in range(5)}) == 5


def test_the_fingerprint_is_of_the_inside(environment: Environment) -> None:
    found = environment.fingerprint()
    if environment.settings.is_remote:
        assert found["kernel"].startswith("Linux ")
        return
    same_kernel = found["kernel"] == f"Linux {os.uname().release}"
    assert same_kernel is not isinstance(environment, (Vm, ContainerInVm))
    if not same_kernel:
        return  # it numbers namespaces as it likes
    own = str(Path("/proc/self/ns/net").readlink())
    assert (found["network"] != own) is environment.settings.own_network


def test_what_a_program_pays_is_measured_inside(
    environment: Environment, processes: Processes, tmp_path: Path
) -> None:
    found = fingerprint(environment.settings, processes, tmp_path)
    shares_loopback = environment.settings.has_generator and not environment.settings.is_remote
    assert len(found) == (8 if shares_loopback else 9)
    assert all(value > 0 for value in found.values()), found
    assert not [*(tmp_path / "fingerprint").iterdir()]


@pytest.mark.parametrize("kind", ["container", pytest.param("pod", marks=pytest.mark.integration)])
def test_a_cpu_limit_holds_the_measurement_back(
    kind: str, processes: Processes, tmp_path: Path
) -> None:
    if not (may_run_pods() if kind == "pod" else may_run_containers()):
        pytest.skip(f"a {kind} needs root, runc, and for a pod podman")
    settings = ENVIRONMENTS[kind].model_validate({"type": kind, "cpus": 0.2})
    assert fingerprint(settings, processes, tmp_path)["cpu_share"] < 0.4


def test_nothing_is_left_when_it_has_stopped(
    environment: Environment, processes: Processes, start: Start
) -> None:
    service = start("sleep", "60")
    processes.stop([service])
    environment.stop()
    assert processes.sweep() == 0
    if environment.settings.own_network and not environment.settings.has_generator:
        # The kernel removes a namespace some time after its last process has ended.
        network = f" {environment.address.rpartition('.')[0]}."
        wait_for(lambda: network not in output(["ip", "-o", "-4", "addr"]))
