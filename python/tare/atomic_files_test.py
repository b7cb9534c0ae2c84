# SPDX-License-Identifier: Apache-2.0
"""Files in a folder that somebody else can write to, too."""

import os
import stat
import struct
from pathlib import Path

import pytest

from tare.atomic_files import created, empty, new_file, opened, regular_file, remove, replace
from tare.errors import InputError

LIST = "system.posix_acl_access"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_contents_replace_the_old_ones_and_leave_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for text in ("first", "µ"):
        replace(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_file_is_private_while_it_is_written_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    before = os.umask(0o027)
    try:
        replace(path, "first")
        assert mode(path) == 0o640
        path.chmod(0o604)
        with new_file(path) as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        assert mode(path) == 0o604
    finally:
        os.umask(before)


def test_whoever_could_not_read_a_file_cannot_read_the_file_that_replaces_it(
    tmp_path: Path,
) -> None:
    """Another group, or one more user of an access control list."""
    path, group = tmp_path / "report.html", 1234
    path.touch(0o600)
    entries = [(1, 6, None), (2, 4, group), (4, 0, None), (16, 4, None), (32, 0, None)]
    packed = [struct.pack("<HHI", *entry[:2], entry[2] or 2**32 - 1) for entry in entries]
    access = struct.pack("<I", 2) + b"".join(packed)
    try:
        os.setxattr(path, LIST, access)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    replace(path, "new")
    assert os.getxattr(path, LIST) == access

    # A list that the folder gives to new files is not the file's.
    os.removexattr(path, LIST)
    path.chmod(0o640)
    os.setxattr(tmp_path, "system.posix_acl_default", access)
    replace(path, "new")
    assert mode(path) == 0o640
    with pytest.raises(OSError, match="No data available"):
        os.getxattr(path, LIST)


def test_group_that_a_replaced_file_had_is_the_group_of_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to a group of others")
    path, group = tmp_path / "report.html", 65_531
    path.touch()
    os.chown(path, -1, group)
    path.chmod(0o640)
    replace(path, "new")
    assert (path.stat().st_gid, mode(path)) == (group, 0o640)

    # A user who is not in this group cannot keep it.
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    replace(path, "newer")
    assert path.stat().st_gid != group
    assert mode(path) == 0o600


def test_file_that_another_program_puts_at_the_name_of_an_unfinished_one_stays(
    tmp_path: Path,
) -> None:
    def fails() -> None:
        with new_file(tmp_path / "report.html"):
            (unfinished,) = tmp_path.iterdir()
            unfinished.rename(tmp_path / "elsewhere")
            unfinished.write_text("precious")
            raise ValueError(unfinished)

    with pytest.raises(ValueError, match=r"report\.html") as error:
        fails()
    assert error.value.args[0].read_text() == "precious"


def test_link_at_the_path_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "report.html"
    victim.write_text("precious")
    path.symlink_to(victim)
    replace(path, "new")
    assert (victim.read_text(), path.read_text()) == ("precious", "new")
    assert not path.is_symlink()


def test_names_that_an_attacker_can_guess_are_not_used(tmp_path: Path) -> None:
    """A link under the name `.report.html.PID` was written through."""
    victim, path = tmp_path / "victim", tmp_path / "report.html"
    victim.write_text("precious")
    for guess in (os.getpid(), "new", "tmp"):
        (tmp_path / f".report.html.{guess}").symlink_to(victim)
    replace(path, "new")
    assert victim.read_text() == "precious"


def test_error_names_the_file_and_leaves_the_old_contents(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    replace(path, "first")
    with pytest.raises(OSError, match=r"absent.report\.html"):
        replace(tmp_path / "absent" / "report.html", "new")

    def interrupted() -> None:
        with new_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_that_is_exchanged_under_way_is_not_written_to(tmp_path: Path) -> None:
    folder, other = tmp_path / "result", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    with new_file(folder / "report.html") as file:
        file.write(b"new")
        folder.rename(tmp_path / "moved")
        folder.symlink_to(other)
    assert (tmp_path / "moved" / "report.html").read_bytes() == b"new"
    assert not list(other.iterdir())


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    os.close(regular_file(path, os.O_RDWR | os.O_CREAT))
    assert path.is_file()
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    with opened(tmp_path) as folder:
        for within in (None, folder):
            for flags in (os.O_RDONLY, os.O_WRONLY):
                with pytest.raises(InputError, match=r"/link: is a symbolic link$"):
                    regular_file(tmp_path / "link", flags, within)
                for name in ("folder", "pipe"):
                    with pytest.raises(InputError, match=rf"/{name}: is not an ordinary file$"):
                        regular_file(tmp_path / name, flags, within)
            with pytest.raises(FileNotFoundError, match="absent"):
                regular_file(tmp_path / "absent", os.O_RDONLY, within)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def half_written(path: Path, other: Path | None = None) -> None:
    """Fails while the file is written, after another took its place."""
    with created(path) as file:
        file.write(b"half")
        if other is not None:
            other.replace(path)
        raise KeyboardInterrupt


def test_new_file_replaces_nothing(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "plan.toml"
    with created(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    (tmp_path / "link").symlink_to(victim)
    for existing in (path, tmp_path / "link"):
        with pytest.raises(FileExistsError, match=existing.name), created(existing):
            pass
    assert path.read_text() == "new"
    assert not victim.exists()


def test_half_a_new_file_is_deleted_but_no_other_file(tmp_path: Path) -> None:
    path, other = tmp_path / "plan.toml", tmp_path / "other"
    with pytest.raises(KeyboardInterrupt):
        half_written(path)
    assert not path.exists()
    other.write_text("precious")
    with pytest.raises(KeyboardInterrupt):
        half_written(path, other)
    assert path.read_text() == "precious"


def test_file_is_deleted_only_while_it_has_the_name(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.touch()
    other.write_text("precious")
    with opened(tmp_path) as folder:
        status = path.stat()
        assert remove("a", status, folder)
        assert not remove("b", status, folder)
        with pytest.raises(FileNotFoundError):
            remove("a", status, folder)
    assert other.read_text() == "precious"


def test_link_is_not_emptied(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "log"
    victim.write_text("precious")
    path.symlink_to(victim)
    with pytest.raises(InputError, match="log: is a symbolic link"):
        empty(path)
    assert victim.read_text() == "precious"
    empty(victim)
    assert victim.read_text() == ""
