# SPDX-License-Identifier: Apache-2.0
"""Virtual machines of `tare run`: layers in them, and who may use them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic_core import PydanticCustomError
from tests.lab.conftest import Experiment
from tests.lab.leftovers import of_guests
from tests.rights import may_make_namespaces, may_run_guests
from tests.waiting import wait_for

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments.environment import Program
from tare.lab.environments.guest import client
from tare.lab.environments.guest.machine import Machine
from tare.lab.environments.guest.qemu import Qemu
from tare.lab.environments.guest.uml import UserModeLinux
from tare.lab.environments.launch import RunError
from tare.lab.environments.vm import Vm
from tare.lab.machine.service import Service
from tare.lab.machine.snapshot import Snapshot
from tare.lab.processes.processes import Processes
from tare.plan import expected, parse
from tare.plan.schema.environments import MachineName, VmEnvironment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not may_make_namespaces(), reason="guests need root"),
]
USER_MODE_LINUX = pytest.mark.skipif(
    not may_run_guests(), reason="needs user-mode Linux, and a CPU that it works on"
)
PLAN = """\
name = "try"
budget = "3%"
environments = {environments}
service = {{ command = "sleep {{port}}" }}
[[conditions]]
name = "plain"
[[conditions]]
name = "again"
"""
COMPUTE = "import time; sum(range(2_000_000)); print(time.process_time())"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
GUESTS = '[{ type = "vm", machine = "uml" }]'


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Vm]:
    with Processes(tmp_path / "supervisor.log") as processes:
        table = {"type": "vm", "machine": "uml", "memory": "512 MiB"}
        settings = VmEnvironment.model_validate(table)
        found = environments.of_run(settings, processes, "1/vm/plain")
        assert isinstance(found, Vm)
        found.prepare()
        yield found
        found.stop()


@USER_MODE_LINUX
def test_a_guest_has_the_memory_that_it_was_given(guest: Vm) -> None:
    kibibytes = guest.exec(["sed", "-n", "s/^MemTotal: *//p", "/proc/meminfo"]).split()[0]
    assert 400 << 10 < int(kibibytes) <= 512 << 10


@USER_MODE_LINUX
def test_processes_whose_parents_have_ended_leave_no_zombies(guest: Vm) -> None:
    guest.exec(["sh", "-c", "for one in 1 2 3 4 5; do sh -c 'sleep 0.1 & exit 0'; done"])
    # The name of a zombie stays.
    wait_for(lambda: "sleep" not in guest.exec(["ps", "-A", "-o", "comm="]))


@USER_MODE_LINUX
def test_who_does_not_know_the_token_gets_no_answer(guest: Vm, tmp_path: Path) -> None:
    guest.exec(["true"])
    assert guest._guest is not None
    made = tmp_path / "made"
    request = {"do": "exec", "words": ["/bin/mkdir", str(made)], "variables": {}}
    for token in ("", "x" * 32, "ä"):
        with (
            client.asked(token, guest.address, request) as connection,
            pytest.raises(ConnectionResetError),
        ):
            client.answer(connection, guest._guest.pid)
    assert not made.exists()
    with client.asked(guest._token, guest.address, request) as connection:
        assert client.answer(connection, guest._guest.pid)["code"] == 0
    assert made.exists()


@USER_MODE_LINUX
def test_a_guest_that_has_ended_is_told(guest: Vm, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = Program("service", ["sh", "-c", "echo up; sleep 600"], tmp_path, log, [0])
    service = guest.start(program)
    wait_for(lambda: log.exists() and log.read_text() == "up\n")
    for pid in guest.family(service).pids:
        with suppress(ProcessLookupError):  # one may end with another
            os.kill(pid, signal.SIGKILL)
    while service.code is None:
        guest.processes.wait(0.02)
    assert service.code == -signal.SIGKILL
    assert "the virtual machine has ended" in log.read_text()
    with pytest.raises(RunError, match="the virtual machine has ended"):
        guest.exec(["true"])


@USER_MODE_LINUX
def test_a_kernel_that_does_not_start_says_why(guest: Vm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest._machine, "interface", "none0")
    for _ in range(2):
        with pytest.raises(RunError, match=r"did not start: .*none0"):
            guest.exec(["true"])


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vm]:
    """A guest without hardware for guests."""
    settings = VmEnvironment.model_validate({"type": "vm", "machine": "tcg", "memory": "512 MiB"})
    try:
        Vm.check(settings)
    except PydanticCustomError as missing:
        pytest.skip(f"this test needs {missing.message()}")
    with Processes(tmp_path_factory.mktemp("computed") / "supervisor.log") as processes:
        guest = environments.of_run(settings, processes, "1/vm/plain")
        assert isinstance(guest, Vm)
        try:
            guest.prepare()
            yield guest
        finally:
            guest.stop()


def test_a_computed_guest_is_slower_than_the_host(computed: Vm) -> None:
    words = [sys.executable, "-I", "-S", "-c", COMPUTE]
    host = float(subprocess.check_output(words))
    assert float(computed.exec(words)) > 1.5 * host


def test_a_computed_guest_counts_what_it_killed_for_memory(computed: Vm) -> None:
    before = computed.oom_kills()
    # The kernel refuses a gigabyte at once.
    fill = "[bytes([1]) * (1 << 20) for _ in range(1024)]"
    computed.exec(["sh", "-c", f"{sys.executable} -I -S -c '{fill}' || :"])
    assert computed.oom_kills() == before + 1


def test_a_computed_guest_has_the_traffic_of_its_interface(computed: Vm) -> None:
    computed.exec(["true"])
    service, before, after = Service([], interfaces=computed.interfaces), Snapshot(), Snapshot()
    service.read(before)
    computed.exec(["true", "x" * 100_000])
    service.read(after)
    grown = after.since(before)
    assert grown["network_received"] > 100_000 > grown["network_transmitted"] > 0


def test_a_plan_may_leave_the_machine_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def works(*machines: str) -> list[str]:
        def check(self: Machine) -> None:
            if getattr(self, "accelerator", "uml") not in machines:
                raise expected("something")

        monkeypatch.setattr(Qemu, "check", check)
        monkeypatch.setattr(UserModeLinux, "check", check)
        environments_ = '["vm", { type = "vm", name = "mine" }]'
        plan = parse(PLAN.format(environments=environments_), "try.toml", Path("/plans"))
        assert plan.environment_names == ["vm", "mine"]
        found = environments.resolved(plan)
        assert environments.resolved(found) == found
        machines_ = {getattr(environment, "machine", None) for environment in found.environments}
        assert len(machines_) == 1
        return found.environment_names

    assert works("kvm", "tcg", "uml") == ["vm-kvm", "mine"]
    assert works("tcg", "uml") == ["vm-tcg", "mine"]
    assert works("uml") == ["vm-uml", "mine"]
    assert works() == ["vm-kvm", "mine"]  # whose error says what is missing


@USER_MODE_LINUX
def test_user_mode_linux_has_one_cpu() -> None:
    table = '[{ type = "vm", machine = "uml", cpus = 2 }]'
    plan = parse(PLAN.format(environments=table), "try.toml", Path("/plans"))
    with pytest.raises(InputError, match=r"cpus: found 2, expected at most 1 with machine"):
        environments.available(plan)


@pytest.mark.parametrize("machine", ["uml", "tcg"])
def test_a_guest_is_booted_for_each_condition(experiment: Experiment, machine: MachineName) -> None:
    try:
        Vm.check(VmEnvironment(type="vm", machine=machine))
    except PydanticCustomError as missing:
        pytest.skip(f"this test needs {missing.message()}")
    says_where = '{ type = "wrap", command = ["sh", "-c", "cat $0; exec \\"$@\\"", "BOOT"] }'
    experiment.write_plan(
        top=f'environments = [{{ type = "vm", machine = "{machine}" }}]',
        layers=says_where.replace("BOOT", BOOT_ID),
        patience="600s",
    )
    text = experiment.plan.read_text()
    layers = text[text.index("layers = ") :]
    experiment.plan.write_text(text.replace('name = "one"', f'name = "one"\n{layers}'))
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    boots = {Path(BOOT_ID).read_text()}
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
        assert run["environment"] == f"vm-{machine}"
        (log,) = (experiment.result / log for log in run["logs"] if "load" not in Path(log).name)
        boots.add(log.read_text().splitlines(keepends=True)[0])
    assert len(boots) == 1 + len(experiment.manifest["runs"])


@USER_MODE_LINUX
def test_hook_and_proxy_work_in_guests(experiment: Experiment) -> None:
    experiment.write_plan_of_layers(GUESTS)
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert {run["environment"] for run in experiment.manifest["runs"]} == {"vm-uml"}
    reasons = {run["condition"]: run["reason"] for run in experiment.manifest["runs"]}
    # The link is memory of one machine, and the load generator is on another one.
    assert "used shared memory" in reasons.pop("more0")
    assert set(reasons.values()) == {None}
    for run in experiment.manifest["runs"]:
        assert run["cpu"]["service_ns_per_request"] > 0
    assert not of_guests(os.getpid())
