# SPDX-License-Identifier: Apache-2.0
"""Cores of programs do not have the memory that they share with Tare: it is hundreds of MiB."""

import subprocess
from pathlib import Path

from tests.hook.hooked import hooked, rules
from tests.hostile.conftest import Compile

from tare.native import native


def test_core_of_a_hooked_program_has_no_shared_memory(restricted: Compile, tmp_path: Path) -> None:
    seen = hooked([restricted("mapped")], tmp_path, rules("needle"))
    assert seen.behaviour.out == "2 0\n"


def test_core_of_a_logging_program_has_no_shared_memory(
    restricted: Compile, tmp_path: Path
) -> None:
    library = Path(native("lib", "libtare_log.so"))
    include = Path(native("include", "tare_log.h")).parent
    flags = ["-DLOGGING", f"-I{include}", library, f"-Wl,-rpath,{library.parent}"]
    command: list[str | Path] = [
        native("bin", "tare-log"),
        "run",
        "--out",
        tmp_path / "events.log",
        "--",
    ]
    out = subprocess.check_output([*command, restricted("mapped", *flags)], text=True)
    mappings, dumped = map(int, out.split())
    assert (mappings > 1, dumped) == (True, 0)
