# SPDX-License-Identifier: Apache-2.0
"""Programs that end while their collector looks at them."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.log.conftest import PROGRAMS, dump
from tests.log.test_failures import collecting, ended
from tests.waiting import SECONDS, wait_for


def test_program_that_makes_its_first_ring_between_two_looks_and_ends_loses_nothing(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """The collector asks whether the program has ended, and gets the answer when it has."""
    library, asked = tmp_path / "late_answer.so", tmp_path / "asked"
    source = PROGRAMS / "late_answer.c"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, source, "-o", library], check=True)
    late = ["env", f"LD_PRELOAD={library}", f"TARE_TEST_ASKED={asked}"]
    variables = os.environ | {"TARE_LOG": str(tmp_path / "socket")}
    pipe = subprocess.PIPE
    with (
        collecting(tmp_path, "events.log", *late) as collector,
        subprocess.Popen([compiled("opened")], env=variables, stdin=pipe, stdout=pipe) as program,
    ):
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        wait_for(asked.exists)
        program.communicate(b"\n", timeout=SECONDS)
        assert program.returncode == 0
        ended(collector)
    assert [row.payload for row in dump(tmp_path / "events.log")] == ["1", "2", "3"]
