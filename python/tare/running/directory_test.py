# SPDX-License-Identifier: Apache-2.0
import os
import re
import stat
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.running import directory
from tare.running.directory import make_runtime_directory, runtime_directory_fault

STRANGER = 65_533


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runtime directory is made."""
    monkeypatch.setattr(directory, "runtime_directory", lambda: tmp_path / "tare")
    return tmp_path / "tare"


def require_refused(path: Path, fault: str) -> None:
    assert str(runtime_directory_fault()).startswith(f"{path}: {fault}")
    with pytest.raises(InputError, match=re.escape(f"{path}: {fault}")):
        make_runtime_directory()


def test_directory_is_created_once_and_nobody_else_can_write_to_it(path: Path) -> None:
    assert runtime_directory_fault() is None
    for _ in range(2):
        assert make_runtime_directory() == path
        assert not stat.S_IMODE(path.stat().st_mode) & 0o022
    assert runtime_directory_fault() is None


def test_directory_that_others_can_write_to_is_refused(path: Path) -> None:
    make_runtime_directory()
    path.chmod(0o777)
    require_refused(path, "mode 777 (expected 7")


def test_link_and_file_are_refused(path: Path) -> None:
    path.symlink_to(path.parent)
    require_refused(path, "not a directory; remove it")
    path.unlink()
    path.touch()
    require_refused(path, "not a directory; remove it")


def test_directory_of_another_user_is_refused(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give directories to another user")
    path.mkdir(mode=0o700)
    os.chown(path, STRANGER, STRANGER)
    require_refused(path, f"owned by user {STRANGER} (expected 0). Remove it, or set XDG_RUNTIME")
