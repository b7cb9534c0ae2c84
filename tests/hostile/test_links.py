# SPDX-License-Identifier: Apache-2.0
"""Symbolic links and pipes of another user in a folder where a command of root works."""

import os
import signal
import socket
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


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A file of events."""
    file = tmp_path / "events.log"
    assert ran(tmp_path, LOG, "run", "--out", file).returncode == 0
    return file


@pytest.mark.parametrize(
    "words",
    [
        (LOG, "export", "--to", "chrome", "--out", "planted", "EVENTS"),
        (LOG, "stats", "--flame", "planted", "EVENTS"),
        (LOG, "sync", "--file", "planted", "127.0.0.1:9"),
        (native("bin", "tare-load"), "http", "--out", "planted", "http://SERVER"),
        (native("bin", "tare-spans"), "receive", "--out", "planted", "--grpc", "127.0.0.1:0"),
        (native("bin", "tare-spans"), "decode", "--out", "planted"),
        ("env", "TARE_LINK_LOG=planted", native("bin", "tare-link"), "--", "true"),
    ],
    ids=["export", "flame", "sync", "load", "spans-receive", "spans-decode", "link"],
)
def test_no_result_goes_where_a_link_of_another_user_leads(
    words: tuple[object, ...], events: Path, open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    plant(open_to_all / "planted", secret)
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        command = [str(events if word == "EVENTS" else word) for word in words]
        done = subprocess.run(
            [word.replace("SERVER", here) for word in command],
            cwd=open_to_all,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert done.returncode == 2
    assert f"it is a symbolic link of user {NOBODY}" in done.stderr
    assert secret.read_text() == "secret"


PIDS = 2_000
"""So many names are planted: the process that writes next has one of these numbers."""


@pytest.mark.parametrize("form", ["chrome", "parquet"])
def test_names_of_unfinished_exports_cannot_be_guessed(
    form: str, events: Path, open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with subprocess.Popen(["true"]) as last:
        pass
    for pid in range(last.pid, last.pid + PIDS):
        plant(open_to_all / f".tare-export-{pid}", secret)
    command = [LOG, "export", "--to", form, "--out", str(open_to_all / "out"), str(events)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert secret.read_text() == "secret"
    assert (open_to_all / "out").stat().st_size > 0


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
