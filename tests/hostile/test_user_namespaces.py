# SPDX-License-Identifier: Apache-2.0
"""Who may collect from a program in a user namespace: rootless podman, and a namespace that maps no
user. Users without an ID there have the overflow ID, which says nothing about who they are."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, compile_program, dump
from tests.rights import end_rootless_podman
from tests.waiting import SECONDS, wait_for

USER = 4242
"""Nobody of the machine's: rootless podman maps this one ID to root."""
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
OVERFLOW = Path("/proc/sys/kernel/overflowuid").read_text().strip()
REFUSED = "tare-log: no events are sent: the collector runs as another user"
SYSTEM = ("usr", "lib", "lib64", "bin")


@contextmanager
def collecting(
    folder: Path, *before: str, stderr: int | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """A collector at FOLDER/socket, which all may connect to."""
    for name in ("events.log", "socket"):
        (folder / name).unlink(missing_ok=True)
    command: list[str | Path] = [*before, folder / "tare-log", "collect"]
    command += ["--socket", folder / "socket", "--out", folder / "events.log"]
    with subprocess.Popen(command, text=True, stderr=stderr) as collector:
        try:
            log = folder / "events.log"
            wait_for(lambda: (folder / "socket").exists() and log.exists() and log.stat().st_size)
            (folder / "socket").chmod(0o777)
            yield collector
        finally:
            collector.terminate()


@pytest.fixture
def folder(open_to_all: Path) -> Iterator[Path]:
    """Has the program and the collector's, for all users."""
    compile_program("payloads", open_to_all)
    shutil.copy(TARE_LOG, open_to_all)
    yield open_to_all
    end_rootless_podman(open_to_all / "run")


def unmapped(folder: Path) -> list[str]:
    """The program in a user namespace in which it has the overflow ID, as all others have."""
    return ["unshare", "--user", str(folder / "payloads")]


def in_podman(folder: Path) -> list[str]:
    """The program as root of a rootless container of USER's, with the system of this machine."""
    if shutil.which("podman") is None or shutil.which("runc") is None:
        pytest.skip("podman and runc are not installed")
    for name in ("root", "home", "run"):
        (folder / name).mkdir(mode=0o700)
        os.chown(folder / name, USER, USER)
    for name in (*SYSTEM, "shared"):
        (folder / "root" / name).mkdir()
        os.chown(folder / "root" / name, USER, USER)
    mounts = [f"--volume=/{name}:/{name}:ro" for name in SYSTEM if Path("/", name).exists()]
    podman = "podman --cgroup-manager cgroupfs --storage-driver vfs --runtime runc run --rm"
    limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
    environment = [f"HOME={folder}/home", f"XDG_RUNTIME_DIR={folder}/run"]
    variables = ["--env=TARE_LOG=/shared/socket", "--env=TARE_LOG_UID"]
    inside = [*mounts, f"--volume={folder}:/shared", "--rootfs", f"{folder}/root"]
    words = [*podman.split(), "--network=none", "--workdir=/", *limits, *variables, *inside]
    return [*AS_USER, "env", *environment, *words, "/shared/payloads"]


def logs(folder: Path, program: Sequence[str], **variables: str) -> str:
    """What the program says; it logs to the socket in the folder."""
    environment = os.environ | {"TARE_LOG": str(folder / "socket")} | variables
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_rootless_container_logs_to_its_own_user(folder: Path) -> None:
    program = in_podman(folder)
    folder.chmod(0o777)
    with collecting(folder, *AS_USER) as collector:
        assert REFUSED not in logs(folder, program)
    assert collector.returncode == 0
    assert len(dump(folder / "events.log")) > 50


def test_rootless_container_takes_a_collector_of_root_only_by_its_id(folder: Path) -> None:
    program = in_podman(folder)
    with collecting(folder):
        assert REFUSED in logs(folder, program)
        assert dump(folder / "events.log") == []
        assert REFUSED not in logs(folder, program, TARE_LOG_UID=OVERFLOW)
    assert len(dump(folder / "events.log")) > 50


def test_overflow_id_matches_nobody_even_itself(folder: Path) -> None:
    with collecting(folder):
        assert REFUSED in logs(folder, unmapped(folder))
        assert dump(folder / "events.log") == []
        assert REFUSED not in logs(folder, unmapped(folder), TARE_LOG_UID=OVERFLOW)
    assert len(dump(folder / "events.log")) > 50


def test_collector_with_the_overflow_id_takes_no_unmapped_user_for_its_own(folder: Path) -> None:
    with collecting(folder, "unshare", "--user", stderr=subprocess.PIPE) as collector:
        logs(folder, [*AS_USER, str(folder / "payloads")])
        collector.terminate()
        _, said = collector.communicate(timeout=SECONDS)
    assert f"of user {OVERFLOW} is refused: all users that this user namespace does not" in said
    assert dump(folder / "events.log") == []
