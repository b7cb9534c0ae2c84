# SPDX-License-Identifier: Apache-2.0
"""Warnings of the library go to stderr, and into no file of the program."""

import subprocess
from pathlib import Path

from tests.hostile.conftest import Compile

from tare.native import native


def test_nothing_is_written_to_what_is_no_longer_stderr(
    restricted: Compile, tmp_path: Path
) -> None:
    library = Path(native("lib", "libtare_log.so"))
    include = Path(native("include", "tare_log.h")).parent
    program = restricted("second", f"-I{include}", library, f"-Wl,-rpath,{library.parent}")
    command: list[str | Path] = [
        native("bin", "tare-log"),
        "run",
        "--out",
        tmp_path / "events.log",
        "--",
    ]
    subprocess.run([*command, program, tmp_path / "data"], check=True, capture_output=True)
    assert (tmp_path / "data").read_bytes() == b""
