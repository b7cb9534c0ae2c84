# SPDX-License-Identifier: Apache-2.0
"""Symbolic links and pipes of another user in a folder where a command of root works."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.hostile.conftest import NOBODY
from tests.waiting import SECONDS, wait_for

from tare.native import native

HOOK, LOG = native("bin", "tare-hook"), native("bin", "tare-log")
RULES = "[[rule]]\nkeywords = ['one']\n"


def plant(link: Path, target: Path) -> None:
    link.symlink_to(target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)


def ran(folder: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    command = [str(word) for word in (*words, "--", "true")]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
    )


@pytest.mark.parametrize(
    "words",
    [
        (LOG, "run"),
        (LOG, "run", "--out", "events", "--costs", "tare.log"),
        (HOOK, "--events", "tare.log"),
        (HOOK, "--costs", "tare.log"),
    ],
    ids=["out", "log-costs", "events", "hook-costs"],
)
def test_link_of_another_user_is_not_followed(
    words: tuple[object, ...], open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.touch()
    plant(open_to_all / "tare.log", secret)
    done = ran(open_to_all, *words)
    assert done.returncode == 2
    assert f"it is a symbolic link of user {NOBODY}" in done.stderr
    assert secret.read_bytes() == b""
    os.chown(open_to_all / "tare.log", 0, 0, follow_symlinks=False)
    assert ran(open_to_all, *words).returncode == 0


@pytest.mark.parametrize("command", [(LOG, "run", "--out", "events"), (HOOK,)], ids=["log", "hook"])
def test_link_at_the_name_of_the_next_costs_is_not_followed(
    command: tuple[object, ...], open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    plant(open_to_all / "costs.new", secret)
    assert ran(open_to_all, *command, "--costs", "costs").returncode == 0
    assert secret.read_text() == "secret"
    assert (open_to_all / "costs").stat().st_size > 0


def test_hook_reads_no_rules_from_a_pipe(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    os.mkfifo(rules)
    done = ran(tmp_path, HOOK, "--rules", rules)
    assert done.returncode == 2
    assert "not a regular file" in done.stderr


def test_rules_that_become_a_pipe_do_not_stop_the_hook(tmp_path: Path) -> None:
    rules, pipe, begun = tmp_path / "rules.toml", tmp_path / "pipe", tmp_path / "begun"
    rules.write_text(RULES)
    os.mkfifo(pipe)
    program = ["sh", "-c", f"touch {begun}; exec sleep {SECONDS}"]
    command = [HOOK, "--rules", str(rules), "--", *program]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as hook:
        wait_for(begun.exists)
        pipe.rename(rules)
        try:
            assert hook.stderr is not None
            line = hook.stderr.readline()
            hook.send_signal(signal.SIGTERM)
            hook.wait(SECONDS)
        finally:
            hook.kill()
    assert "not a regular file" in line
    assert "the previous rules stay in force" in line
