# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab.start import replicas
from tare.plan import Plan, parse

TEXT = """\
name = "shop"
budget = "3%"
[[services]]
name = "users"
replicas = 2
command = "users {port}"
volume = "1 MiB"
ready = { log = "ready" }
[service]
command = "orders {port} {users.port}"
[[conditions]]
name = "plain"
[[conditions]]
name = "slow"
layers = [{ type = "wrap", command = "nice", at = "users" }]
"""


def plan(text: str = TEXT) -> Plan:
    return parse(text, "shop.toml", Path("/plans"))


def test_the_balancer_starts_after_the_replicas_and_has_the_name_of_the_service() -> None:
    first, second, balancer, service = replicas.expanded(plan())
    assert [first.name, second.name, balancer.name] == ["users-1", "users-2", "users"]
    assert service.name is None
    assert first.table == second.table
    (config,) = balancer.table.files.values()
    assert "server {users-1.address}:{users-1.port}; server {users-2.address}" in config
    assert "{name}" not in config
    assert balancer.table.volume is None
    assert (balancer.table.ready.tcp, balancer.table.ready.log) == (True, None)


def test_layers_stand_at_the_replicas_and_not_at_the_balancer() -> None:
    slow = plan().conditions[1]
    found = [len(slow.layers_at(service.role)) for service in replicas.expanded(plan())]
    assert found == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("replicas = 2", "replicas = 0", "services[1].replicas: found 0"),
        ("replicas = 2", "replicas = 2\nport = 80", "expected no fixed port with replicas"),
        (
            "[service]",
            '[[services]]\nname = "users-2"\ncommand = "x {port}"\n[service]',
            "expected another name than users-2, which is a replica of users",
        ),
        ("{users.port}", "{users.prot}", "expected {users.address} or {users.port} instead of"),
        ("{users.port}", "{users-1.port}", "expected the address or port of a service above it"),
    ],
)
def test_what_replicas_cannot_be(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(TEXT.replace(old, new))
    assert message in str(caught.value)
