# SPDX-License-Identifier: Apache-2.0
"""What Tare removes from a temporary directory that others use too, and what it leaves there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tare.samples.sql.spill import PREFIX, RECORD, remove_abandoned, spill_folder

NOBODY = 65_534
HOLDS_A_FOLDER = """
import sys, time
from pathlib import Path
from tare.samples.sql.spill import spill_folder
folder = spill_folder(Path(sys.argv[1]))
(folder / "block").touch()
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that everybody may write to, as /tmp."""
    tmp_path.chmod(0o1777)
    return tmp_path


def started(shared: Path) -> tuple["subprocess.Popen[str]", Path]:
    """A process that has its folder in `shared` until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_FOLDER, str(shared)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.fixture
def abandoned(shared: Path) -> Path:
    """The folder of a process that was killed."""
    process, folder = started(shared)
    process.kill()
    process.communicate()
    return folder


MOUNTS = """
import ctypes, os, sys
from pathlib import Path
from tare.samples.sql.spill import RECORD, remove_abandoned
folder = Path(sys.argv[1])
if ctypes.CDLL(None).mount(b"none", os.fsencode(folder), b"tmpfs", 0, b"mode=700"):
    sys.exit(3)
(folder / RECORD).write_text(str(folder.stat().st_ino))
print(remove_abandoned(folder), (folder / RECORD).exists())
"""


def test_a_file_system_that_is_mounted_there_is_left_as_it_is(shared: Path) -> None:
    folder = shared / f"{PREFIX}mounted"
    folder.mkdir(0o700)
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", MOUNTS, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not done.stdout:
        pytest.skip("no mount can be made here")
    assert done.stdout == "False True\n"


def test_what_a_killed_process_left_is_removed_by_the_next(shared: Path, abandoned: Path) -> None:
    assert (abandoned / "block").exists()
    mine = spill_folder(shared)
    assert [*shared.iterdir()] == [mine]


def test_the_folder_of_a_living_process_stays_until_it_exits(shared: Path) -> None:
    process, folder = started(shared)
    remove_abandoned(folder)
    assert (folder / "block").exists()
    process.communicate("")
    assert process.returncode == 0
    assert not folder.exists()


def test_a_process_has_one_private_folder(shared: Path) -> None:
    folder = spill_folder(shared)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert spill_folder(shared) == folder


def looks_abandoned(path: Path) -> Path:
    """A folder with a record of its inode, as Tare makes it."""
    path.mkdir(mode=0o700)
    (path / RECORD).write_text(str(path.stat().st_ino))
    (path / "block").touch()
    return path


def test_a_folder_that_tare_did_not_make_stays(shared: Path, abandoned: Path) -> None:
    bare = shared / f"{PREFIX}bare"
    bare.mkdir(mode=0o700)
    copied = shared / f"{PREFIX}copied"
    shutil.copytree(abandoned, copied)
    piped = shared / f"{PREFIX}piped"
    piped.mkdir(mode=0o700)
    os.mkfifo(piped / RECORD)
    file = shared / f"{PREFIX}file"
    file.touch()
    pipe = shared / f"{PREFIX}pipe"
    os.mkfifo(pipe)
    mine = spill_folder(shared)
    assert {*shared.iterdir()} == {bare, copied, piped, file, pipe, mine}
    assert (copied / "block").exists()


def test_a_folder_that_others_may_enter_stays(shared: Path) -> None:
    opened = looks_abandoned(shared / f"{PREFIX}opened")
    opened.chmod(0o770)
    remove_abandoned(opened)
    assert (opened / "block").exists()
    opened.chmod(0o700)
    remove_abandoned(opened)
    assert not opened.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_stays(shared: Path) -> None:
    """Also where root could remove it."""
    planted = looks_abandoned(shared / f"{PREFIX}planted")
    for path in (planted, *planted.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    spill_folder(shared)
    assert (planted / "block").exists()


def test_links_are_not_followed(shared: Path, abandoned: Path) -> None:
    """Neither a link in the place of a folder or of its record, nor a link inside of it."""
    precious = looks_abandoned(shared / "precious")
    link = shared / f"{PREFIX}link"
    link.symlink_to(precious)
    borrowed = shared / f"{PREFIX}borrowed"
    borrowed.mkdir(mode=0o700)
    record = shared / "record"
    record.write_text(str(borrowed.stat().st_ino))
    (borrowed / RECORD).symlink_to(record)
    (abandoned / "inside").symlink_to(precious)
    mine = spill_folder(shared)
    assert {*shared.iterdir()} == {precious, link, borrowed, record, mine}
    assert (precious / "block").exists()


@pytest.fixture
def deep(shared: Path) -> Iterator[Path]:
    """An abandoned folder with folders in it, deeper than Python's own removal can go."""
    folder = looks_abandoned(shared / f"{PREFIX}deep")
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(2 * sys.getrecursionlimit()):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def test_a_deeply_nested_folder_stops_nothing(shared: Path, deep: Path) -> None:
    assert spill_folder(shared) != deep
