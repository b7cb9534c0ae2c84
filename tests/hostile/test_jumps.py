# SPDX-License-Identifier: Apache-2.0
"""A program whose signal handlers jump out of calls that log does not take more and more memory."""

import os
import subprocess
from pathlib import Path

from tests.hostile.conftest import Compile

from tare.native import native


def test_jumps_out_of_calls_leave_no_rings_behind(restricted: Compile, tmp_path: Path) -> None:
    library = Path(native("lib", "libtare_log.so"))
    include = Path(native("include", "tare_log.h")).parent
    program = restricted("jumping", f"-I{include}", library, f"-Wl,-rpath,{library.parent}")
    command: list[str | Path] = [
        native("bin", "tare-log"),
        "run",
        "--out",
        tmp_path / "events.log",
        "--",
    ]
    small = os.environ | {"TARE_LOG_RING": "64K"}
    mappings = int(subprocess.check_output([*command, program, "1000"], text=True, env=small))
    assert 1 < mappings < 20
