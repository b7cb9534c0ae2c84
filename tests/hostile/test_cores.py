# SPDX-License-Identifier: Apache-2.0
"""Cores of programs do not have the memory that they share with Tare: it is hundreds of MiB."""

import subprocess
from pathlib import Path

from tests.hook.hooked import hooked, rules
from tests.hostile.conftest import Compile, logged_to


def test_core_of_a_hooked_program_has_no_shared_memory(restricted: Compile, tmp_path: Path) -> None:
    seen = hooked([restricted("mapped")], tmp_path, rules("needle"))
    assert seen.behaviour.out == "2 0\n"


def test_core_of_a_logging_program_has_no_shared_memory(
    logging_program: Compile, tmp_path: Path
) -> None:
    command = logged_to(tmp_path)
    out = subprocess.check_output([*command, logging_program("mapped", "-DLOGGING")], text=True)
    mappings, dumped = map(int, out.split())
    assert (mappings > 1, dumped) == (True, 0)
