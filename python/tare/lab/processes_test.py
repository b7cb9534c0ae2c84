# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from tare.lab import processes
from tare.lab.processes import Processes


def test_a_command_that_ignores_its_stop_signal_has_all_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with Processes(tmp_path / "supervisor.log") as held:
        stubborn = held.start(
            "stubborn",
            ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.2; done"],
            directory=tmp_path,
            log=log,
            cpus=sorted(os.sched_getaffinity(0)),
            grace_s=3,
        )
        while "up" not in log.read_text():
            held.wait(0.05)
        monkeypatch.setattr(processes, "ANSWER_LIMIT_S", 2.0)
        held.stop([stubborn])
        assert stubborn.ending == "was killed by SIGKILL"
