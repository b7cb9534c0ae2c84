# SPDX-License-Identifier: Apache-2.0
"""Warnings of the library go to stderr, and into no file of the program."""

import subprocess
from pathlib import Path

from tests.hostile.conftest import Compile, logged_to


def test_nothing_is_written_to_what_is_no_longer_stderr(
    logging_program: Compile, tmp_path: Path
) -> None:
    program = logging_program("second")
    command = logged_to(tmp_path)
    subprocess.run([*command, program, tmp_path / "data"], check=True, capture_output=True)
    assert (tmp_path / "data").read_bytes() == b""
