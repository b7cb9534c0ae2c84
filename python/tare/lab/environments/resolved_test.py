# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments.guest.qemu import Qemu
from tare.lab.environments.guest.uml import UserModeLinux
from tare.plan import Plan, expected, parse

PLAN = """\
name = "try"
budget = "3%"
environments = {environments}
service = {{ command = "sleep {{port}}" }}
{top}
[[conditions]]
name = "plain"
[[conditions]]
name = "again"
"""


def plan(table: str, top: str = "") -> Plan:
    return parse(PLAN.format(environments=table, top=top), "try.toml", Path("/plans"))


@pytest.fixture(autouse=True)
def only_user_mode_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(_: Qemu) -> None:
        raise expected("something")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Qemu, "check", lacks)
    monkeypatch.setattr(UserModeLinux, "check", lambda _: None)
    monkeypatch.setattr("tare.lab.environments.vm.find", str)
    monkeypatch.setattr(Path, "exists", lambda _: True)


def test_the_baseline_is_named_as_its_environment() -> None:
    top = 'compare = "environments"\nbaseline = "vm"'
    found = environments.resolved(plan('["host", "vm"]', top))
    assert (found.environment_names, found.baseline_name) == (["host", "vm-uml"], "vm-uml")
    environment, _ = found.place("plain", "vm-uml~again")
    assert environment.type == "vm"


def test_two_environments_never_get_one_name() -> None:
    table = '["vm", { type = "vm", machine = "uml" }]'
    with pytest.raises(InputError, match=r"environments\[2\]: .*not vm-uml twice"):
        environments.resolved(plan(table))


def test_an_experiment_goes_on_with_the_machine_that_it_began_with() -> None:
    both = plan('["vm", { type = "vm", name = "mine" }]')
    assert environments.resolved(both).environment_names == ["vm-uml", "mine"]
    found = environments.resolved(both, {"vm-tcg": "tcg", "mine": "kvm"})
    assert found.environment_names == ["vm-tcg", "mine"]
    assert [getattr(settings, "machine", None) for settings in found.environments] == ["tcg", "kvm"]
