# SPDX-License-Identifier: Apache-2.0
"""Compose files as services of a plan."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tare.errors import InputError
from tare.plan import Plan, load

SHOP = """\
services:
  web:
    image: shop-web
    command: ["serve", "--users", "http://users:8000"]
    ports: ["127.0.0.1:8080:80/tcp"]
    depends_on: [users, cache]
  traffic:
    image: wrk
    depends_on: [web]
  users:
    build: ./users
    environment: { DATABASE: "db:5432", DEBUG: false, COST: $$5 }
    expose: ["8000"]
    depends_on:
      db: { condition: service_healthy }
  db:
    image: postgres:17
    container_name: the-database
    volumes: ["data:/var/lib/postgresql", "./init.sql:/init/init.sql:ro"]
    healthcheck: { test: pg_isready, interval: 1m30s, retries: 2 }
    deploy: { resources: { limits: { cpus: "0.5", memory: 512m } } }
    restart: always
  cache:
    image: redis
  debugger:
    image: debugger
    profiles: [debug]
volumes: { data: {} }
x-note: nothing
"""
PLAN = """\
name = "shop"
budget = "3%"
{top}

[service]
compose = "compose.yaml"
name = "web"
{service}

[[conditions]]
name = "plain"

[[conditions]]
name = "slow"
layers = [{{ type = "env", variables = {{ SLOW = "1" }} }}]
"""


def read(folder: Path, compose: str = SHOP, service: str = "", top: str = "") -> Plan:
    (folder / "compose.yaml").write_text(dedent(compose))
    (folder / "plan.toml").write_text(PLAN.format(service=service, top=top))
    return load(folder / "plan.toml")


def services(plan: Plan) -> dict[str | None, Any]:
    return {service.table.name: service.table for service in plan.all_services}


def test_services_start_after_those_that_they_depend_on(tmp_path: Path) -> None:
    found = services(read(tmp_path))
    assert [*found] == ["db", "users", "cache", "web"]
    assert found["web"].after == ["users", "cache"]


def test_services_that_need_the_one_with_the_load_do_not_run(tmp_path: Path) -> None:
    assert "traffic" not in services(read(tmp_path))


def test_many_services_that_depend_on_all_others_are_ordered(tmp_path: Path) -> None:
    rest = "".join(
        f"  s{n}:\n    image: i\n    depends_on: [{', '.join(f's{m}' for m in range(n + 1, 60))}]\n"
        for n in range(60)
    )
    found = services(read(tmp_path, SHOP.replace("  web:\n", rest + "  web:\n")))
    assert len(found) == 64


def test_services_of_a_profile_do_not_run(tmp_path: Path) -> None:
    assert "debugger" not in services(read(tmp_path))


def test_omitted_services_do_not_run(tmp_path: Path) -> None:
    found = services(read(tmp_path, service='omit = ["cache"]'))
    assert [*found] == ["db", "users", "web"]
    assert found["web"].after == ["users"]


def test_the_port_is_that_of_the_container(tmp_path: Path) -> None:
    found = services(read(tmp_path))
    assert (found["web"].port, found["users"].port, found["cache"].port) == (80, 8000, None)


def test_words_follow_the_entrypoint_of_the_image(tmp_path: Path) -> None:
    web = services(read(tmp_path))["web"]
    assert web.container.image == "shop-web"
    assert web.container.arguments == ["serve", "--users", "http://users:8000"]
    assert web.container.entrypoint is None


def test_an_image_that_is_built_has_the_name_of_folder_and_service(tmp_path: Path) -> None:
    folder = tmp_path / "Shop"
    folder.mkdir()
    assert services(read(folder))["users"].container.image == "localhost/shop-users"


def test_variables_are_texts(tmp_path: Path) -> None:
    variables = services(read(tmp_path))["users"].environment
    assert variables == {"DATABASE": "db:5432", "DEBUG": "false", "COST": "$5"}


def test_a_folder_of_this_machine_is_mounted_and_a_volume_is_not(tmp_path: Path) -> None:
    mounts = services(read(tmp_path))["db"].container.mounts
    assert mounts == {"/init/init.sql": str(tmp_path / "init.sql")}


def test_limits_are_those_of_the_container(tmp_path: Path) -> None:
    container = services(read(tmp_path))["db"].container
    assert (container.cpus, container.memory) == (0.5, 512 << 20)


def test_a_service_is_ready_when_it_is_healthy(tmp_path: Path) -> None:
    ready = services(read(tmp_path))["db"].ready
    assert ready.command == ["sh", "-c", "pg_isready"]
    assert ready.timeout == 180 * 10**9


def test_another_name_of_a_container_is_an_alias(tmp_path: Path) -> None:
    assert services(read(tmp_path))["db"].aliases == ["the-database"]


def test_services_have_a_bridge_unless_the_plan_has_environments(tmp_path: Path) -> None:
    assert read(tmp_path).environments[0].own_network
    assert read(tmp_path, top='environments = ["netns"]').environment_names == ["netns"]


def test_what_the_plan_says_of_a_service_counts(tmp_path: Path) -> None:
    own = 'port = 81\n[[services]]\nname = "db"\nport = 5433\nready = { tcp = true }\n'
    own += 'container = { image = "postgres:18" }'
    found = services(read(tmp_path, service=own))
    assert (found["web"].port, found["db"].port) == (81, 5433)
    assert (found["db"].container.image, found["db"].container.cpus) == ("postgres:18", 0.5)


def test_the_plan_may_add_a_service(tmp_path: Path) -> None:
    own = '[[services]]\nname = "disk"\ncommand = "disk {port}"'
    assert next(iter(services(read(tmp_path, service=own)))) == "disk"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${SET}", "1"),
        ("$SET-", "1-"),
        ("${SET:-2}", "1"),
        ("${EMPTY:-2}", "2"),
        ("${EMPTY-2}", ""),
        ("${UNSET-2}", "2"),
        ("${UNSET}", ""),
        ("${SET:+3}", "3"),
        ("${UNSET+3}", ""),
        ("${SET:?needed}", "1"),
        ("$$SET", "$SET"),
        ("${FROM_FILE}", "in the file"),
    ],
)
def test_variables_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, value: str
) -> None:
    monkeypatch.setenv("SET", "1")
    monkeypatch.setenv("EMPTY", "")
    (tmp_path / ".env").write_text('SET=2\n# FROM_FILE=no\nexport FROM_FILE="in the file"\n')
    compose = SHOP.replace("$$5", f"'{text}'")
    assert services(read(tmp_path, compose))["users"].environment["COST"] == value


def test_a_file_of_variables_is_read(tmp_path: Path) -> None:
    (tmp_path / "web.env").write_text("A=1\nB=2\n")
    compose = SHOP.replace("image: shop-web", "image: shop-web\n    env_file: web.env")
    compose = compose.replace("ports:", "environment: [B=3]\n    ports:")
    assert services(read(tmp_path, compose))["web"].environment == {"A": "1", "B": "3"}


def test_a_missing_file_of_variables_is_named(tmp_path: Path) -> None:
    compose = SHOP.replace("image: shop-web", "image: shop-web\n    env_file: web.env")
    with pytest.raises(InputError, match=r"web\.env: not a file of variables: No such file"):
        read(tmp_path, compose)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("services:", "- services", "not a Compose file"),
        ("services:", "services: [", "not a Compose file"),
        (
            "image: redis",
            "image: redis\n    privileged: true",
            "services.cache.privileged: found true, expected no such key",
        ),
        ("image: redis", "image: redis\n    depends_on: [web]", "cache -> web"),
        ("image: redis", "image: redis\n    depends_on: [nothing]", "depends on nothing"),
        ("image: redis", "image: redis\n    volumes: ['data:/d']", "volume data: db and cache"),
        ("image: redis", "image: ${REDIS_IMAGE:?name it}", "REDIS_IMAGE must be set: name it"),
        ('"8000"', '"8000-8010"', "one port of a container"),
        ("1m30s", "1.5.2 m", "a duration such as 1m30s"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=r"compose\.yaml") as error:
        read(tmp_path, SHOP.replace(old, new))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_service_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"service\.name: expected .*: shop, traffic, users"):
        read(tmp_path, SHOP.replace("  web:", "  shop:").replace("[web]", "[shop]"))


@pytest.mark.parametrize(
    "service",
    [
        "omit = 1",
        'omit = ["web", ["db"]]',
        "[services]",
        '[[services]]\nname = ["db"]',
        "compose = 1",
    ],
)
def test_values_of_another_type_are_refused(tmp_path: Path, service: str) -> None:
    (tmp_path / "compose.yaml").write_text(SHOP)
    text = PLAN.format(service=service, top="")
    if service.startswith("compose"):
        text = text.replace('compose = "compose.yaml"\n', "")
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=r"plan\.toml"):
        load(tmp_path / "plan.toml")


def test_a_name_of_another_type_is_refused(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(SHOP)
    text = PLAN.format(service="", top="").replace('name = "web"', "name = [1]")
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=r"service\.name: expected the service with the load"):
        load(tmp_path / "plan.toml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(service="", top=""))
    with pytest.raises(InputError, match=r"compose\.yaml: not a Compose file: No such file"):
        load(tmp_path / "plan.toml")


def test_a_file_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    doubled = "".join(f"x{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 64))
    with pytest.raises(InputError, match="not a Compose file"):
        read(tmp_path, f"x0: &a0 [1]\n{doubled}{SHOP}")
