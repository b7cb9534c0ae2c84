# SPDX-License-Identifier: Apache-2.0
"""Programs whose first thread has exited: others go on, though /proc/PID shows no files."""

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.hook_command.service import HOOK, child_of, rules
from tests.hostile.conftest import Compile
from tests.log.conftest import dump, served
from tests.log.test_failures import collecting, ended
from tests.waiting import SECONDS, wait_for


def test_such_a_program_is_taken_over(logging_program: Compile, tmp_path: Path) -> None:
    program = logging_program("orphaned")
    variables = os.environ | {"TARE_LOG": str(tmp_path / "socket")}
    pipe = subprocess.PIPE
    with collecting(tmp_path, "before.log") as collector:
        process = subprocess.Popen([program], env=variables, stdin=pipe, stdout=pipe)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        wait_for(lambda: served(collector.pid))
        collector.send_signal(signal.SIGKILL)
        collector.wait()
    with collecting(tmp_path, "after.log") as collector:
        wait_for(lambda: served(collector.pid))
        process.communicate(b"\n", timeout=SECONDS)
        assert process.returncode == 0
        ended(collector)
    files = [tmp_path / "before.log", tmp_path / "after.log"]
    assert {row.payload for file in files for row in dump(file)} == {"1", "2"}


def test_tare_hook_attaches_to_such_a_program_until_it_ends(
    restricted: Compile, tmp_path: Path
) -> None:
    (tmp_path / "rules").write_text(rules("needle"))
    events, pipe = tmp_path / "events", subprocess.PIPE
    options = ["--rules", str(tmp_path / "rules"), "--events", str(events)]
    command = [HOOK, *options, "--", str(restricted("echoing"))]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as hook:
        assert hook.stdin is not None
        assert hook.stdout is not None
        assert hook.stdout.readline() == "ready\n"
        pid = child_of(hook)
        hook.kill()
        hook.wait()
        attach = [HOOK, "--attach", str(pid), "--events", str(events)]
        with subprocess.Popen(attach, stderr=pipe, text=True) as second:
            assert second.stderr is not None
            assert f"process {pid}" in second.stderr.readline()
            for _ in range(3):
                hook.stdin.write("needle\n")
                hook.stdin.flush()
                assert hook.stdout.readline() == "needle\n"
            wait_for(lambda: len(events.read_text().splitlines()) == 3)
            assert second.poll() is None
            hook.stdin.close()
            assert second.wait(SECONDS) == 0
    assert [json.loads(line)["keyword"] for line in events.read_text().splitlines()] == [
        "needle"
    ] * 3
