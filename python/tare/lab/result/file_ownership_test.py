# SPDX-License-Identifier: Apache-2.0
"""Folders that others could change are no place for a result."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from tare import trust
from tare.errors import InputError
from tare.lab import carry_out
from tare.lab.result.file_ownership import require_trusted, resolved, trusted
from tare.lab.result.folder import ResultFolder
from tare.lab.run import experiment, resume
from tare.plan import parse
from tare.trust import overflow_user

STRANGER = 65_533
PLAN = """
name = "alike"
budget = "3%"
[service]
command = ["true", "{port}"]
[load]
path = "/"
duration = "1s"
[[conditions]]
name = "one"
[[conditions]]
name = "two"
"""
SMOKE = "blocks = 1\nsmoke = true\n"


@pytest.fixture
def check(tmp_path: Path) -> Callable[[Path], None]:
    """Checks a folder for a plan of this user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    plan = parse(PLAN, "plan.toml", tmp_path)

    def checks(folder: Path) -> None:
        require_trusted(trusted(plan), folder)

    return checks


def result(folder: Path) -> Path:
    """Looks like a result folder that was interrupted."""
    for name in ("logs/block=1", "samples", "work/1-host-one"):
        (folder / name).mkdir(parents=True)
    for name in ("manifest.json", "logs/block=1/one.log", "work/1-host-one/pid"):
        (folder / name).touch()
    return folder


def refused(check: Callable[[Path], None], folder: Path, path: Path, text: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{path}: {text}")):
        check(folder)


def test_ones_own_result_is_trusted_and_so_is_a_new_one(
    check: Callable[[Path], None], tmp_path: Path
) -> None:
    check(result(tmp_path / "result"))
    check(tmp_path / "new" / "result")


@pytest.mark.parametrize("name", ["", "logs", "samples", "manifest.json", "logs/block=1/one.log"])
def test_a_part_of_another_users_is_refused(
    check: Callable[[Path], None], tmp_path: Path, name: str
) -> None:
    folder = result(tmp_path / "result")
    os.chown(folder / name, STRANGER, -1)
    refused(check, folder, folder / name, f"belongs to user {STRANGER}, which could change what")


def test_so_is_a_new_result_below_another_users_folder(
    check: Callable[[Path], None], tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "inner").mkdir(parents=True)
    os.chown(theirs, STRANGER, -1)
    refused(check, theirs / "inner" / "result", theirs, f"belongs to user {STRANGER}")


def test_whoever_may_run_commands_anyway_is_trusted(
    tmp_path: Path, check: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wrote the plan, and who called sudo."""
    folder = result(tmp_path / "result")
    os.chown(folder, STRANGER, -1)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    check(folder)
    monkeypatch.delenv("SUDO_UID")
    plans = tmp_path / "plans"
    plans.mkdir()
    os.chown(plans, STRANGER, -1)
    require_trusted(trusted(parse(PLAN, "plan.toml", plans)), folder)
    refused(check, folder, folder, f"belongs to user {STRANGER}")


@pytest.mark.usefixtures("check")
def test_the_machines_root_is_trusted_in_a_user_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it has no ID: `/` belongs to the overflow ID there, as do folders of all others. So
    these are trusted above a result only, and not in a folder such as /tmp."""
    nobody = overflow_user()
    os.chown(tmp_path, nobody, -1)
    plan = parse(PLAN, "plan.toml", Path("/"))
    with pytest.raises(InputError, match=f"belongs to user {nobody}"):
        require_trusted(trusted(plan), tmp_path)
    uid_map = tmp_path / "uid_map"
    uid_map.write_text("         0       1000          1\n")
    monkeypatch.setattr(trust, "UID_MAP", uid_map)
    require_trusted(trusted(plan), tmp_path / "result")
    with pytest.raises(InputError, match=f"belongs to user {nobody}"):
        require_trusted(trusted(plan), tmp_path)
    shared = tmp_path / "shared"
    (shared / "others").mkdir(parents=True)
    shared.chmod(0o1777)
    os.chown(shared / "others", nobody, -1)
    with pytest.raises(InputError, match=f"others: belongs to user {nobody}"):
        require_trusted(trusted(plan), shared / "others" / "result")
    (shared / "link").symlink_to(tmp_path)
    os.chown(shared / "link", nobody, -1, follow_symlinks=False)
    with pytest.raises(InputError, match=f"link: is a symbolic link of user {nobody}"):
        resolved(trusted(plan), shared / "link" / "result")


def test_everybodys_folder_is_refused_unless_it_is_sticky(
    check: Callable[[Path], None], tmp_path: Path
) -> None:
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)
    refused(check, public / "result", public, "can be written by every user")
    public.chmod(0o1777)
    check(public / "result")


def test_links_are_refused_but_for_what_services_left(
    check: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = result(tmp_path / "result")
    left = folder / "work" / "1-host-one"
    (left / "link").symlink_to("/etc/passwd")
    os.chown(left, STRANGER, -1)
    check(folder)
    (folder / "costs").symlink_to("/etc")
    refused(check, folder, folder / "costs", "is a symbolic link")


@pytest.mark.usefixtures("check")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_folder_that_another_user_makes_after_the_check_gets_no_result(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder such as /tmp, where everybody can make the folder that is named with --out."""
    folder, theirs = tmp_path / "result", tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, STRANGER, -1)

    def checks(users: set[int], folder: Path) -> bool:
        is_there = require_trusted(users, folder)
        if not folder.exists():
            theirs.rename(folder) if kind == "folder" else folder.symlink_to(theirs)
        return is_there

    monkeypatch.setattr(experiment, "require_trusted", checks)
    monkeypatch.setattr(experiment, "_carry_out", lambda *_: pytest.fail("it began"))
    with pytest.raises(InputError, match=re.escape(f"{folder}: ")):
        carry_out(parse(SMOKE + PLAN, "plan.toml", tmp_path), folder, Mock())
    assert not list((folder if kind == "folder" else theirs).iterdir())


@pytest.mark.usefixtures("check")
def test_links_of_other_users_lead_to_no_folder(tmp_path: Path) -> None:
    """In a folder such as /tmp, at the name of --out or above it; own links do."""
    users = trusted(parse(PLAN, "plan.toml", tmp_path))
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    (tmp_path / "place").mkdir()
    theirs.symlink_to("place")
    mine.symlink_to(tmp_path / "other" / ".." / "theirs")
    assert resolved(users, mine / "new" / "result") == tmp_path / "place" / "new" / "result"
    os.chown(theirs, STRANGER, -1, follow_symlinks=False)
    for folder in (theirs, theirs / "new", mine / "new"):
        with pytest.raises(InputError, match=rf"{theirs}: is a symbolic link of user {STRANGER};"):
            carry_out(parse(SMOKE + PLAN, "plan.toml", tmp_path), folder, Mock())
    mine.unlink()
    mine.symlink_to(mine)
    with pytest.raises(InputError, match=f"{mine}: too many symbolic links"):
        resolved(users, mine)


@pytest.mark.usefixtures("check")
def test_link_that_another_user_can_replace_leads_to_no_folder(tmp_path: Path) -> None:
    """Whoever owns the folder of a link chooses where it leads, whoever owns the link."""
    users = trusted(parse(PLAN, "plan.toml", tmp_path))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, STRANGER, -1)
    (theirs / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match=f"{theirs}: belongs to user {STRANGER}"):
        resolved(users, theirs / "link" / "result")


@pytest.mark.parametrize("name", ["", "logs"])
def test_result_that_others_can_add_to_is_refused(
    check: Callable[[Path], None], tmp_path: Path, name: str
) -> None:
    """A link `logs/block=4`, made after the check, would have files emptied elsewhere."""
    folder = result(tmp_path / "result")
    (folder / name).chmod(0o1777)
    refused(check, folder, folder / name, "can be written by every user")


@pytest.mark.usefixtures("check")
def test_result_that_is_taken_away_while_it_is_checked_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user can take a folder of its own out of /tmp, and put it back later."""
    folder, elsewhere = result(tmp_path / "result"), tmp_path / "elsewhere"
    (folder / "plan.toml").write_text(SMOKE + PLAN)
    os.chown(folder, STRANGER, -1)

    def checks(users: set[int], path: Path) -> bool:
        folder.rename(elsewhere)
        is_there = require_trusted(users, path)
        elsewhere.rename(folder)
        return is_there

    monkeypatch.setattr(experiment, "require_trusted", checks)
    monkeypatch.setattr(resume, "require_trusted", checks)
    monkeypatch.setattr(ResultFolder, "open", lambda _: pytest.fail("it was opened"))
    plan = parse(SMOKE + PLAN, "plan.toml", tmp_path)
    text = f"{folder}/plan.toml: No such file or directory; there is nothing to resume"
    with pytest.raises(InputError, match=re.escape(text)):
        carry_out(plan, folder, Mock(), resume=True)
    with pytest.raises(InputError, match=re.escape(text)):
        resume.resumable(None, folder)


@pytest.mark.usefixtures("check")
def test_plan_of_a_result_is_not_read_before_the_result_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder could have its name by the time of a later check."""
    folder = result(tmp_path / "result")
    os.chown(folder, STRANGER, -1)
    monkeypatch.setattr(resume, "read_bytes", lambda *_: pytest.fail("it was read"))
    with pytest.raises(InputError, match=f"{folder}: belongs to user {STRANGER}"):
        resume.resumable(None, folder)
