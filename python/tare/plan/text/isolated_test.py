# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.plan import Plan, TareLoad, isolated, left_out, parse

TEXT = """\
name = "shop"
budget = "3%"
[[services]]
name = "store"
command = "store {port}"
[[services]]
name = "users"
beside = "store"
command = "users {port} {store.port}"
path = "/users/1"
[[services]]
name = "cache"
command = "cache {port}"
container = true
path = "/"
[[services]]
name = "payments"
command = "payments {port}"
environment = { USERS = "{users.address}:{users.port}" }
path = "/pay"
[service]
command = "orders {port} {payments.port} {cache.port}"
[load]
mode = "open"
rate = 20
path = "/orders"
[[conditions]]
name = "plain"
[[conditions]]
name = "slow"
layers = [
  { type = "wrap", command = "nice" },
  { type = "env", variables = { WAIT = "1" }, at = "payments" },
  { type = "env", variables = { WAIT = "2" }, at = "users" },
  { type = "env", variables = { WAIT = "3" }, at = "cache" },
]
"""


def plan(text: str = TEXT) -> Plan:
    """A service that needs three others, of which one needs two."""
    return parse(text, "shop.toml", Path("/plans"))


def test_a_service_has_the_load_with_what_it_needs() -> None:
    alone = isolated(plan(), "payments")
    assert alone.name == "shop-payments"
    assert alone.service.command == ["payments", "{port}"]
    assert [service.name for service in alone.services] == ["store", "users"]
    assert isinstance(alone.load, TareLoad)
    assert (alone.load.path, alone.load.rate, alone.folder) == ("/pay", 20, Path("/plans"))
    assert [condition.name for condition in alone.conditions] == ["plain", "slow"]
    layers = [layer.model_dump() for layer in alone.conditions[1].layers]
    assert [(layer["variables"]["WAIT"], layer["at"]) for layer in layers] == [
        ("1", None), ("2", "users"),
    ]  # fmt: skip
    assert parse(alone.text, "again", Path("/plans")).model_dump() == alone.model_dump()


def test_layers_at_services_that_do_not_run_are_named() -> None:
    assert left_out(plan(), "payments") == [
        "--isolate payments: condition 'slow' is measured without the layer wrap at [service],"
        " which does not run",
        "--isolate payments: condition 'slow' is measured without the layer env at cache, which"
        " does not run",
    ]


def test_conditions_that_differ_elsewhere_are_refused() -> None:
    """In the whole application, only the cache has another layer."""
    text = TEXT.replace('at = "payments"', 'at = "cache"').replace('at = "users"', 'at = "cache"')
    with pytest.raises(InputError) as error:
        isolated(plan(text), "payments")
    assert "expected a layer at payments or at a service that it needs" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "orders",
            TEXT,
            "expected a service orders (it has store, users, cache, payments; without --isolate,"
            " [service] has the load)",
        ),
        (
            "store",
            TEXT.replace("store {port}", 'store {port}"\npath = "/" #'),
            "with --isolate store, all conditions are equal",
        ),
        ("store", TEXT, "shop.toml:3: services[1].path: found nothing, expected a path"),
        (
            "users",
            TEXT.replace("users/1", 'users/1"\nreplicas = 2 #'),
            "services[2].replicas: found 2, expected no replicas with --isolate",
        ),
        ("users", TEXT.replace("20", '"50% of capacity"'), 'load.rate: found "50% of capacity"'),
    ],
)
def test_what_cannot_be_isolated_is_said(name: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        isolated(plan(text), name)
    assert message in str(error.value)
