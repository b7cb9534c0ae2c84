# SPDX-License-Identifier: Apache-2.0
"""Another user chooses names that /proc shows, with characters that end a line for Python alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.rights import may_make_namespaces

from tare.lab.environments.pod import _innermost
from tare.running import segments
from tare.running.programs import _is_own, _own_pid

RENAMES = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
print(flush=True)
input()
"""


@contextmanager
def named(name: str) -> Iterator[int]:
    """The PID of a process with this name, of at most 15 bytes."""
    assert len(name) <= 15
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", RENAMES, name], stdin=pipe, stdout=pipe
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def test_name_of_a_process_does_not_change_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a process of another user can be a trap for its readers."""
    with named("x\rUid:\t7\t7\t7\t7") as pid:
        status = Path(f"/proc/{pid}/status").read_bytes()
        assert _is_own(status)
        monkeypatch.setattr(os, "geteuid", lambda: 7)
        assert not _is_own(status)


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x1c"])
def test_name_of_a_process_does_not_change_its_pid(end: str) -> None:
    with named(f"x{end}NSpid:\t7") as pid:
        assert _own_pid(pid) == pid
        assert [*_innermost(pid)] == [pid]


def test_name_of_a_process_does_not_make_it_a_zombie() -> None:
    with named("x\rState:\tZ") as pid:
        found = {path.parent for path in segments._descriptors(pid)}
        assert found == {Path(f"/proc/{pid}/fd")}


# Prints what an expression is before and after a mount.
MOUNTS = """
import ctypes, os, sys
from pathlib import Path
from tare.lab.doctor.cgroups import _own_folders
from tare.lab.machine.fingerprint import cgroup_version
from tare.lab.machine.saturation import mounts
from tare.lab.processes.supervisor import Cgroups
from tare.lab.result.file_ownership import _check_way

def usable():
    groups = Cgroups.usable()
    return groups and groups.home

folder = Path(sys.argv[2])
print(eval(sys.argv[1]))
if ctypes.CDLL(None).mount(b"none", os.fsencode(folder), b"tmpfs", 0, b"mode=755"):
    sys.exit(3)
print(eval(sys.argv[1]))
"""


@pytest.mark.parametrize("end", ["\x1c", "\u2028"])
@pytest.mark.parametrize(
    "expression",
    [
        "_own_folders()",
        "cgroup_version()",
        "mounts()",
        "usable()",
        "bool(_check_way({0}, folder, [folder.parent, folder]))",
    ],
)
def test_mount_point_with_the_end_of_a_line_changes_nothing(
    tmp_path: Path, expression: str, end: str
) -> None:
    if not may_make_namespaces():
        pytest.skip("no mount can be made here")
    folder = tmp_path / f"a{end}b"
    folder.mkdir()
    alone = ["unshare", "--mount", sys.executable, "-c", MOUNTS, expression, str(folder)]
    done = subprocess.run(alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()
    assert after == before


# Enters a control group with an odd name; no reader fails.
GROUP = """
import os
from pathlib import Path
from tare.lab.doctor.cgroups import _own_folders
from tare.lab.environments.running import _cgroups_of
from tare.lab.machine.saturation import Groups
from tare.lab.processes.supervisor import Cgroups

groups = Cgroups.usable()
if groups is None:
    raise SystemExit(3)
group = groups.home / f"odd{os.getpid()}\\x1cb\\u2028c"
group.mkdir()
(group / "cgroup.procs").write_text("0")
try:
    Cgroups.usable()
    _cgroups_of(os.getpid())
    assert group in [folder for *_, folder in _own_folders()]
    assert Groups.of([os.getpid()]).cpu
finally:
    groups.leave()
    group.rmdir()
"""


def test_name_of_a_control_group_may_have_the_end_of_a_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROUP], capture_output=True, text=True, check=False
    )
    if done.returncode == 3:
        pytest.skip("no control group can be made here")
    assert done.returncode == 0, done.stderr
