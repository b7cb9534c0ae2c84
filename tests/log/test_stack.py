# SPDX-License-Identifier: Apache-2.0
"""Calls that log run on the small stacks that signal handlers have."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.log.conftest import TARE_LOG

LARGEST = 1024


def test_no_call_that_logs_takes_more_than_a_kilobyte_of_stack(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    program = str(compiled("stack"))
    command = [str(TARE_LOG), "run", "--out", str(tmp_path / "events.log"), "--", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    used = {name: int(number) for name, number in map(str.split, done.stdout.splitlines())}
    assert len(used) == 13
    assert max(used.values()) <= LARGEST, used
