# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.plan import TareLoad, TcpLoad, load, parse

BASE = """\
name = "long"
budget = "3%"
blocks = 10
environments = ["host", "netns"]
[service]
command = "serve {port}"
[service.files]
"a.conf" = "a"
[load]
users = 2
duration = "60s"
[[conditions]]
name = "plain"
[[conditions]]
name = "hook"
layers = [{ type = "hook" }]
"""


def extended(folder: Path, text: str, base: str = BASE) -> Path:
    """The file of a plan that extends another plan."""
    (folder / "base.toml").write_text(base)
    file = folder / "short.toml"
    file.write_text(f'extends = "base.toml"\nname = "short"\n{text}')
    return file


def test_a_plan_has_the_keys_of_both(tmp_path: Path) -> None:
    own = 'environments = ["host"]\n[load]\nduration = "2s"\n'
    plan = load(extended(tmp_path, own), {"blocks": 6})
    assert (plan.name, plan.blocks, plan.environment_names) == ("short", 6, ["host"])
    assert isinstance(plan.load, TareLoad)
    assert (plan.load.users, plan.load.duration) == (2, 2 * 10**9)
    assert [condition.name for condition in plan.conditions] == ["plain", "hook"]
    assert plan.folder == tmp_path
    assert parse(plan.text, "again", tmp_path).model_dump() == plan.model_dump()


def test_a_table_of_another_type_is_another_one(tmp_path: Path) -> None:
    own = '[load]\ntype = "tcp"\nsend = "x"\nreply = "resp"\n'
    base = BASE.replace("[load]", '[load]\ntype = "http"\npath = "/x"')
    plan = load(extended(tmp_path, own, base))
    assert isinstance(plan.load, TcpLoad)
    assert plan.load.users is None


def test_tables_in_tables_are_merged(tmp_path: Path) -> None:
    plan = load(extended(tmp_path, '[service.files]\n"b.conf" = "b"\n'))
    assert plan.service.files == {"a.conf": "a", "b.conf": "b"}


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        ("blocks = 0", BASE, "short.toml:3: blocks: found 0"),
        ("", BASE.replace("= 10", "= 0"), "base.toml:3: blocks: found 0"),
        ("", f'extends = "more.toml"\n{BASE}', "base.toml extends another plan"),
        ("", "name = ", "base.toml:1: not TOML"),
    ],
)
def test_errors_name_the_file_that_has_the_key(
    tmp_path: Path, text: str, base: str, message: str
) -> None:
    with pytest.raises(InputError) as error:
        load(extended(tmp_path, text, base))
    assert message in str(error.value)


def test_a_plan_has_a_name_of_its_own(tmp_path: Path) -> None:
    file = extended(tmp_path, "")
    file.write_text('extends = "base.toml"\n')
    with pytest.raises(InputError, match="name: found nothing"):
        load(file)


@pytest.mark.parametrize("name", ['"../base.toml"', '"/etc/passwd"', "3", '""', '"none.toml"'])
def test_only_a_plan_in_the_same_folder_can_be_extended(tmp_path: Path, name: str) -> None:
    file = tmp_path / "short.toml"
    file.write_text(f'extends = {name}\nname = "short"\n')
    with pytest.raises(InputError, match=r"a plan in the same folder|none.toml: No such file"):
        load(file)


def test_a_plan_that_is_extended_is_a_file_or_a_link_to_one(tmp_path: Path) -> None:
    file = extended(tmp_path, "")
    base = tmp_path / "base.toml"
    base.rename(tmp_path / "elsewhere.toml")
    base.symlink_to("elsewhere.toml")
    assert load(file).name == "short"
    base.unlink()
    os.mkfifo(base)  # opening it would wait for its writer
    with pytest.raises(InputError, match="is not a regular file"):
        load(file)
