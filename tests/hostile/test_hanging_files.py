# SPDX-License-Identifier: Apache-2.0
"""Files of FUSE of another user, whose server does not answer."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hostile.conftest import NOBODY, ROOT, VICTIM, says
from tests.hostile.test_budgets import EVENTS, awaited, go_on, numbers
from tests.log.conftest import TARE_LOG, compiled
from tests.log.test_failures import collecting, ended, started
from tests.waiting import SECONDS, wait_for

__all__ = ["compiled"]
LINKS = "tests.hostile.attacks.links_of_root"


@contextmanager
def stopped(attacker: "subprocess.Popen[str]") -> Iterator[None]:
    """At the end: whoever waits for its files can be ended only then."""
    try:
        yield
    finally:
        attacker.kill()


def require_fuse() -> None:
    if not Path("/dev/fuse").exists() or shutil.which("unshare") is None:
        pytest.skip("there is no /dev/fuse, or no unshare")


def test_files_that_their_server_shows_as_roots_are_no_result_to_resume(open_to_all: Path) -> None:
    require_fuse()
    module = "tests.hostile.attacks.fuse_names_root_as_owner"
    command = ["unshare", "--mount", sys.executable, "-B", "-m", module, str(open_to_all)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert f"{open_to_all}: was mounted by user {NOBODY}" in done.stdout


def test_folder_that_its_server_shows_as_the_victims_is_no_runtime_directory(
    open_to_all: Path,
) -> None:
    """Records in it have commands that tare clean runs."""
    require_fuse()
    session = open_to_all / "session"
    (session / "tare").mkdir(parents=True)
    shutil.copy(TARE_LOG, session)
    os.chown(session, VICTIM, VICTIM)
    module = "tests.hostile.attacks.runtime_directory"
    command = ["unshare", "--mount", sys.executable, "-B", "-m", module, str(session)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=SECONDS
    )
    refused = f"{session}/tare: in a file system that was mounted by user {NOBODY}."
    python, native = done.stdout.splitlines()
    assert python.startswith(refused)
    assert native.startswith(f"tare-log: {refused}")


def test_links_that_their_server_shows_as_roots_are_not_followed(
    open_to_all: Path, tmp_path: Path
) -> None:
    require_fuse()
    (tmp_path / "secret").write_text("secret")
    command = ["unshare", "--mount", sys.executable, "-B", "-m", LINKS, open_to_all, tmp_path]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=SECONDS,
    )
    python, native = done.stdout.splitlines()
    assert f"mounted by user {NOBODY}" in python
    assert f"mounted by user {NOBODY}" in native
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").read_text() == "secret"


def test_files_that_never_answer_do_not_stop_a_collector_nor_tare_ps(
    compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    """One that is handed over or has the name of a segment, and the folder in which a program looks
    for its collector."""
    require_fuse()
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    files = open_to_all / "files"
    files.mkdir()
    module = "tests.hostile.attacks.hanging_files"
    attack = [sys.executable, "-B", "-m", module, str(files), str(open_to_all / "socket")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["unshare", "--mount", *attack], stdin=pipe, stdout=pipe, text=True, cwd=ROOT
    ) as attacker:
        try:
            assert attacker.stdin is not None
            assert says(attacker) == "ready"
            with collecting(open_to_all) as collector, stopped(attacker):
                attacker.stdin.write("\n")
                attacker.stdin.flush()
                assert says(attacker) == "sent"
                with awaited(program, "another") as victim:
                    go_on(victim)
                listing = subprocess.Popen([sys.executable, "-m", "tare", "ps"])
                wait_for(lambda: listing.poll() is not None, "the end of tare ps")
                ended(collector)
        finally:
            attacker.kill()
    assert len(numbers(open_to_all / "events.log", victim.pid)) == EVENTS


def test_paths_of_other_sockets_are_not_looked_at(
    compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    """A program of this user named a socket in a folder where a file system of FUSE is now."""
    require_fuse()
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    (open_to_all / "files").mkdir()
    module = "tests.hostile.attacks.replaced_files"
    attack = ["unshare", "--mount", sys.executable, "-B", "-m", module, str(open_to_all)]
    pipe = subprocess.PIPE
    elsewhere = os.environ | {"TARE_LOG": str(open_to_all / "files" / "socket")}
    with (
        started(program, 1, env=elsewhere, stdin=pipe, stdout=pipe) as own,
        subprocess.Popen(attack, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as attacker,
    ):
        assert says(own) == "ready"
        inside = ["nsenter", f"--mount=/proc/{says(attacker)}/ns/mnt"]
        with (
            collecting(open_to_all, "events.log", *inside) as collector,
            stopped(attacker),
            awaited(program, "another") as victim,
        ):
            go_on(victim)
            ended(collector)
    assert len(numbers(open_to_all / "events.log", victim.pid)) == EVENTS


def test_files_put_in_place_of_those_of_a_collector_do_not_stop_it(
    compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    """It looks now and then whether its output and its socket are where they were."""
    require_fuse()
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    (open_to_all / "files").mkdir()
    module = "tests.hostile.attacks.replaced_files"
    attack = ["unshare", "--mount", sys.executable, "-B", "-m", module, str(open_to_all)]
    pipe = subprocess.PIPE
    with subprocess.Popen(attack, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as attacker:
        inside = ["nsenter", f"--mount=/proc/{says(attacker)}/ns/mnt"]
        with (
            collecting(open_to_all, "events.log", *inside) as collector,
            awaited(program, "another") as victim,
            stopped(attacker),
        ):
            assert attacker.stdin is not None
            attacker.stdin.write("\n")
            attacker.stdin.flush()
            assert says(attacker) == "replaced"
            assert collector.stderr is not None
            # It may look between the one and the other, and say more.
            missing = {"events.log: the file was deleted or renamed", "the socket was deleted"}
            while missing:
                line = collector.stderr.readline()
                assert line, missing
                missing = {text for text in missing if text not in line}
            go_on(victim)
            ended(collector)
    assert len(numbers(open_to_all / "old.events.log", victim.pid)) == EVENTS
