# SPDX-License-Identifier: Apache-2.0
"""The file of events: what it had, pipes, full disks."""

import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.hook_command.service import HOOK, MANY, Nginx, Start, exchange, request, rules
from tests.waiting import SECONDS, wait_for


@pytest.mark.parametrize(
    ("option", "said"),
    [(["--rules", "rules.toml"], "rules.toml:1"), (["--costs", "/dev/full"], "not a regular file")],
)
def test_a_run_that_is_refused_leaves_the_file_as_it_was(
    option: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.toml").write_text("rubbish")
    events = tmp_path / "events"
    events.write_text("of an earlier run\n")
    done = subprocess.run(
        [HOOK, *option, "--events", "events", "--", "touch", "ran"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert events.read_text() == "of an earlier run\n"
    assert not (tmp_path / "ran").exists()


def test_ctrl_c_ends_the_wait_for_a_reader_of_the_events(tmp_path: Path, start: Start) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start(HOOK, "--events", str(pipe), "--", "touch", str(tmp_path / "ran"))
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == -signal.SIGINT
    assert not (tmp_path / "ran").exists()


def test_a_reader_that_stops_holds_nothing_up(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle"))
    pipe = nginx.folder / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        options = ["--rules", str(nginx.folder / "rules.toml"), "--events", str(pipe), "--json"]
        process = start(HOOK, *options, "--", *nginx.command)
        nginx.wait()
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        with nginx.connect() as connection:
            for _ in range(10):
                exchange(connection, request(MANY))
        text = b""

        def is_whole() -> bool:
            nonlocal text
            text += reader.read() or b""
            return text.endswith(b"\n")

        wait_for(is_whole)
        process.terminate()
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert err.count("its reader is too slow") == 1
    events = json.loads(err.splitlines()[-1])["events"]
    assert events["lost"] > 0
    assert events["written"] + events["lost"] == 10 * 1000
    lines = text.splitlines()
    assert len(lines) == events["written"]
    assert all(json.loads(line)["keyword"] == "needle" for line in lines)


def test_a_full_disk_is_said_once_and_costs_only_the_events(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle"))
    options = ["--rules", str(nginx.folder / "rules.toml"), "--events", "/dev/full", "--json"]
    process = start(HOOK, *options, "--", *nginx.command)
    nginx.wait()
    with nginx.connect() as connection:
        for _ in range(20):
            exchange(connection, request(b"needle"))
    process.terminate()
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert err.count("No space left on device") == 1
    assert json.loads(err.splitlines()[-1])["events"] == {"written": 0, "lost": 20, "unwanted": 0}
