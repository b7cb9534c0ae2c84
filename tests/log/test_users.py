# SPDX-License-Identifier: Apache-2.0
"""Programs of another user, at a collector of root."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.waiting import SECONDS, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
AS_ANOTHER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


@pytest.fixture
def program(compiled: Callable[[str], Path], readable: Path) -> Path:
    """One that logs five events, and that everyone may run."""
    return Path(shutil.copy(compiled("linked"), readable))


def test_what_a_program_starts_as_another_user_is_served(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    subprocess.run([TARE_LOG, "run", "--out", file, "--", *AS_ANOTHER, program], check=True)
    assert len(dump(file)) == 5


def test_a_stranger_of_another_user_is_refused(program: Path, tmp_path: Path) -> None:
    file, told = tmp_path / "events.log", tmp_path / "socket"
    script = f'printf %s "$TARE_LOG" >{told}.new; mv {told}.new {told}; exec sleep 60'
    command = [TARE_LOG, "run", "--out", str(file), "--", "sh", "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as collector:
        try:
            wait_for(told.exists)
            variables = os.environ | {"TARE_LOG": told.read_text()}
            subprocess.run([*AS_ANOTHER, program], check=True, env=variables)
        finally:
            collector.terminate()
        _, said = collector.communicate(timeout=SECONDS)
    assert "of user 65534 is refused" in said
    assert dump(file) == []


@pytest.mark.parametrize(("by", "is_opened"), [("program", False), ("rule", True)])
def test_sockets_of_root_are_for_rules_alone(
    compiled: Callable[[str], Path], readable: Path, tmp_path: Path, by: str, is_opened: bool
) -> None:
    """A port that is taken says whether the collector has tried to have it."""
    program = shutil.copy(compiled("starting"), readable)
    file, rules = tmp_path / "events.log", tmp_path / "rules"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if by == "rule":
            rules.write_text(f"[[rule]]\nhandler = 'fox-start'\naddress = '127.0.0.1:{port}'\n")
        else:
            rules.write_text("[[rule]]\npolicy = 'wait'\n")
        command = [TARE_LOG, "run", "--rules", str(rules), "--out", str(file), "--"]
        done = subprocess.run(
            [*command, *AS_ANOTHER, str(program), str(port)],
            check=True,
            capture_output=True,
            text=True,
        )
    assert ("Address already in use" in done.stderr) == is_opened
    assert [row.payload for row in dump(file)] == ["1"]
