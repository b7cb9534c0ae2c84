# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys
from pathlib import Path

import pytest

from tare.lab import processes
from tare.lab.processes import Process, Processes, StartError, find

BUSY = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"


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


def test_a_command_that_no_system_can_start_is_an_error_of_its_own(tmp_path: Path) -> None:
    with Processes(tmp_path / "supervisor.log") as held:

        def start(name: str, *command: str, **variables: str) -> Process:
            cpus = sorted(os.sched_getaffinity(0))
            log = tmp_path / "log"
            return held.start(
                name, command, directory=tmp_path, log=log, cpus=cpus, environment=variables
            )

        with pytest.raises(StartError, match="true: illegal environment variable name"):
            start("one", "true", **{"A=B": "1"})
        with pytest.raises(StartError, match="true: embedded null byte"):
            start("two", "true", A="\0")
        held.stop([start("three", "sleep", "60")])


def test_the_cpu_time_of_a_command_is_that_of_one_start(tmp_path: Path) -> None:
    used = []
    with Processes(tmp_path / "supervisor.log") as held:
        for script in (BUSY, "exit"):
            process = held.start(
                "load",
                ["sh", "-c", script],
                directory=tmp_path,
                log=tmp_path / "log",
                cpus=sorted(os.sched_getaffinity(0)),
            )
            while process.code is None:
                held.wait(0.05)
            used.append(held.family(process).cpu_ns)
            held.stop([process])
    assert 0 < used[1] < used[0] / 2, used


def test_system_folders_are_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find("ldconfig") is not None
    assert find("no-such-program") is None


def test_what_is_beside_the_interpreter_is_found_behind_other_words_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "only-beside-it"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    with Processes(tmp_path / "supervisor.log") as held:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        assert find(program.name) == str(program)
        process = held.start(
            "wrapped",
            ["env", program.name],
            directory=tmp_path,
            log=tmp_path / "log",
            cpus=sorted(os.sched_getaffinity(0)),
        )
        while process.code is None:
            held.wait(0.05)
        assert process.ending == "exited with code 7"


def test_every_ending_has_words() -> None:
    assert Process("one", 1, -9).ending == "was killed by SIGKILL"
    assert Process("one", 1, -(signal.SIGRTMIN + 1)).ending == "was killed by signal 35"
