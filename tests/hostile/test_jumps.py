# SPDX-License-Identifier: Apache-2.0
"""A program whose signal handlers jump out of calls that log does not take more and more memory."""

import os
import subprocess
from pathlib import Path

from tests.hostile.conftest import Compile, logged_to


def test_jumps_out_of_calls_leave_no_rings_behind(logging_program: Compile, tmp_path: Path) -> None:
    program = logging_program("jumping")
    command = logged_to(tmp_path)
    small = os.environ | {"TARE_LOG_RING": "64K"}
    mappings = int(subprocess.check_output([*command, program, "1000"], text=True, env=small))
    assert 1 < mappings < 20
